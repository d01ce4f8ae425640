"""The paths: benchmarks that a kernel runs on itself (data/paths), their table and their output."""
