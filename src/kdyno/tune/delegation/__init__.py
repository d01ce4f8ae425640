"""The search for a delegation: a loop around the pipeline that builds, boots and measures kernels."""
