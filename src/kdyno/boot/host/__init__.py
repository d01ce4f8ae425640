"""The settings of this host that affect times: examining its knobs, setting them for measuring, and restoring them."""
