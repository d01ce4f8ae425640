"""Reads a vmlinux: its segments, its sections, the source files of its code, and whether it is the recorded one."""
