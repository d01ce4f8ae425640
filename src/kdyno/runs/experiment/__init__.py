"""The experiment: a TOML file becomes frozen models, and those the plan of what is built and booted, in which order."""
