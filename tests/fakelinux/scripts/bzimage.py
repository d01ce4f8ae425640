"""Makes a toy bzImage: the head of Documentation/arch/x86/boot.rst, and the packed vmlinux."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

vmlinux, banner, made = sys.argv[1:]
payload = gzip.compress(Path(vmlinux).read_bytes(), mtime=0)
kernel = bytearray(1024)
kernel[0x1F1] = 1
kernel[0x202:0x206] = b"HdrS"
struct.pack_into("<HHI", kernel, 0x206, 0x020F, 0, 0)
struct.pack_into("<H", kernel, 0x20E, 0x70)
struct.pack_into("<H", kernel, 0x236, 1)
struct.pack_into("<II", kernel, 0x248, 0, len(payload))
kernel[0x270 : 0x270 + len(banner) + 1] = f"{banner}\0".encode()
Path(made).write_bytes(bytes(kernel) + payload)
