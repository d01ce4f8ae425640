"""Samples of execution -> what the next build uses: looking at PMU records, and exporting them for compilers."""
