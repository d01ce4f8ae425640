"""From recipe and source to image: sources, patches, Kconfig, toolchains, knobs, and the cache of finished images."""
