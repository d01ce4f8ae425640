"""The guest's side of a boot: the agent, its job, and the stream of records that it sends back."""
