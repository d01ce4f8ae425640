"""Makes a toy bzImage: the head of Documentation/arch/x86/boot.rst, and the packed vmlinux."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path

vmlinux, banner, made, *efi_stub = sys.argv[1:]
payload = gzip.compress(Path(vmlinux).read_bytes(), mtime=0)
kernel = bytearray(1024)
kernel[0x1F1] = 1
kernel[0x202:0x206] = b"HdrS"
struct.pack_into("<HHI", kernel, 0x206, 0x020F, 0, 0)
struct.pack_into("<H", kernel, 0x20E, 0x70)
struct.pack_into("<H", kernel, 0x236, 1)
struct.pack_into("<II", kernel, 0x248, 0, len(payload))
kernel[0x270 : 0x270 + len(banner) + 1] = f"{banner}\0".encode()
if efi_stub:
    payload += bytes(-len(payload) % 512)
    size = len(kernel) + len(payload)
    kernel[:2] = b"MZ"
    struct.pack_into("<I", kernel, 0x3C, 0x40)
    kernel[0x40:0x44] = b"PE\0\0"
    struct.pack_into("<HHIIIHH", kernel, 0x44, 0x8664, 1, 0, 0, 0, 240, 0x206)
    struct.pack_into("<HBBIIIII", kernel, 0x58, 0x20B, 2, 20, len(payload), 0, 0, 0x1000, 0x1000)
    struct.pack_into("<QIIHHHHHHIIIIHH", kernel, 0x70, 0, 0x1000, 512, 0, 0, 0, 0, 0, 0, 0, 0x100000, 1024, 0, 10, 0)
    struct.pack_into("<QQQQII", kernel, 0xA0, 0, 0, 0, 0, 0, 16)
    section = struct.pack("<8sIIIIIIHHI", b".text", len(payload), 0x1000, len(payload), 1024, 0, 0, 0, 0, 0x60000020)
    kernel[0x148 : 0x148 + len(section)] = section
Path(made).write_bytes(bytes(kernel) + payload)
