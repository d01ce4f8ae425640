"""Machines: where an image boots. Each is one file behind the protocol in base.py."""
