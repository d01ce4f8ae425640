"""Everything that is measured, and how it is read: the guest's agent and PMU, workloads, cycles, and files of
others.
"""
