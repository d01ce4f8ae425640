"""The pipeline: recipe + source -> image -> boot -> samples, for one experiment. run.py reads as the sentence."""
