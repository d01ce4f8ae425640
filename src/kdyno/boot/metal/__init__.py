"""The machine `metal`: a box that is reached by ssh, and that starts kernels by kexec."""
