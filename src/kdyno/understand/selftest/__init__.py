"""The self-test: experiments without a difference, and how often kdyno finds one."""
