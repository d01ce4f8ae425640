"""Profiles: showing PMU records, and converting them and training counters to the inputs of compilers and linkers."""
