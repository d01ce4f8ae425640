"""What explains a kernel or a measurement, and what tells whether to trust it."""
