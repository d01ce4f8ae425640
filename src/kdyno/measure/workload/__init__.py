"""Workloads: the measurements of a boot. Each is one file behind the protocol in base.py."""
