"""Workloads: what a boot measures. Each is one file behind the protocol in base.py."""
