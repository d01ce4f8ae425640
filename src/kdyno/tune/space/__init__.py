"""The search in a space of recipes: a loop around the pipeline that tries recipes beside the baseline."""
