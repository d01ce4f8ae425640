"""What rides along in a boot: the agent, its job, and the stream of records that it sends back."""
