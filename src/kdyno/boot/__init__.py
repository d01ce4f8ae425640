"""The machines on which images boot. Each is one file that implements the protocol in base.py."""
