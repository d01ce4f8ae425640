"""The server of `kdyno serve`: the pages of a store's history and runs, and entries on changes."""
