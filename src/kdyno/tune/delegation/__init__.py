"""Search: a loop around the line that builds, boots and measures kernels to choose one."""
