"""The configuration inside a kernel (CONFIG_IKCONFIG): kernel/configs.c puts it between two marks, packed with gzip."""

from __future__ import annotations

from kdyno.kernel.built_kernels.packed import NotUnpackable, unpacked
from kdyno.kernel.knobs.kconfig import MOST_BYTES

START, END = b"IKCFG_ST", b"IKCFG_ED"


def configuration_in(vmlinux: bytes) -> bytes | None:
    """Return the text of the .config; None if the kernel doesn't hold a readable one. Pure."""
    start = vmlinux.find(START)
    end = vmlinux.find(END, start)
    if start < 0 or end < 0:
        return None
    try:
        return unpacked(vmlinux[start + len(START) : end], MOST_BYTES, "the configuration in the kernel")
    except NotUnpackable:
        return None
