"""The pipeline of one experiment: recipe + source -> image -> boot -> samples. run.py has its steps in order."""
