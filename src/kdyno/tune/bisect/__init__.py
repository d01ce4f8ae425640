"""The search for the change that made a benchmark worse, among the ordered changes between two kernels."""
