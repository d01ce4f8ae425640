"""The self-test: experiments in which nothing differs, and how often kdyno says that something does."""
