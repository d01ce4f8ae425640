"""The cycle model: a weighted sum of the emulated PMU's events, by CPU family, and its known errors."""
