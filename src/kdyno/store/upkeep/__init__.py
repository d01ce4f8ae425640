"""Looking after a state directory and its store: what takes up space, what may go, runs that come and leave."""
