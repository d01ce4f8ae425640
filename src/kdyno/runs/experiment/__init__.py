"""The experiment: its TOML file, its frozen models, and the plan of its builds and boots in order."""
