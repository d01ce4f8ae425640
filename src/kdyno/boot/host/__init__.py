"""What of this host moves times: its knobs, what they should be for measuring, setting them and bringing them back."""
