"""Built kernels made by hand: a bzImage with a small vmlinux in it, modules, and the tables of CONFIG_KALLSYMS."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

from kdyno.kernel.built_kernels.header import HEAD

BANNER = "6.1.0-99-amd64 (somebody@example.org) #1 SMP Debian 6.1.999-1"
TEXT = 0xFFFFFFFF81000000


def bz_image(payload: bytes, banner: str = BANNER, protocol: int = 0x020F, flags: int = 1) -> bytes:
    """The head of Documentation/arch/x86/boot.rst, one sector of code that runs in real mode, and the payload."""
    kernel = bytearray(1024)
    kernel[0x1F1] = 1
    kernel[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", kernel, 0x206, protocol)
    struct.pack_into("<H", kernel, 0x20E, HEAD + 0x10 - 0x200)
    struct.pack_into("<H", kernel, 0x236, flags)
    struct.pack_into("<II", kernel, 0x248, 0, len(payload))
    text = banner.encode() + b"\0"
    kernel[HEAD + 0x10 : HEAD + 0x10 + len(text)] = text
    return bytes(kernel) + payload


def ikconfig(config: str) -> bytes:
    """A configuration as kernel/configs.c keeps it."""
    return b"IKCFG_ST" + gzip.compress(config.encode(), mtime=0) + b"IKCFG_ED"


def module(name: str, depends: Sequence[str] = ()) -> bytes:
    """A 64-bit ELF file with nothing but .modinfo."""
    info = f"license=GPL\0depends={','.join(depends)}\0name={name}\0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    at_info, at_names = 64, 64 + len(info)
    table = at_names + len(names)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2
    )
    sections = [(0, 0, 0), (1, at_info, len(info)), (10, at_names, len(names))]
    headers = b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in sections)
    return head + info + names + headers


def tables(symbols: Sequence[tuple[int, str]], last: bytes = b"\xff", relative_to: int | None = None) -> bytes:
    """What scripts/kallsyms.c writes of `kind and name`s at addresses, each letter being its own token, and `last` that
    of the letter 255: that of Linux 6.1, or of 7.1 if `relative_to` is the address of the tables.
    """
    packed = [bytes([len(text)]) + text.encode("latin-1") for _, text in symbols]
    number = struct.pack("<I", len(symbols))
    if relative_to is None:
        offsets = b"".join(struct.pack("<i", -1 - (address - TEXT)) for address, _ in symbols)
        number = offsets + b"\0" * (-len(offsets) % 8) + struct.pack("<Q", TEXT) + number + bytes(4)
    markers = [sum(map(len, packed[:number])) for number in range(0, len(packed), 256)]
    names = b"".join(packed)
    names += b"\0" * (-len(names) % 4)
    texts = [*(bytes([code or 1]) for code in range(255)), last]
    starts = [sum(len(text) + 1 for text in texts[:code]) for code in range(256)]
    token_table = b"".join(text + b"\0" for text in texts)
    token_table += b"\0" * (-len(token_table) % 4)
    index = struct.pack("<256H", *starts)
    content = number + names + struct.pack(f"<{len(markers)}I", *markers) + token_table + index
    if relative_to is not None:
        first = relative_to + len(content)
        content += b"".join(struct.pack("<i", address - first - 4 * at) for at, (address, _) in enumerate(symbols))
    return content


def vmlinux(symbols: Sequence[tuple[int, str]], config: str = "", last: bytes = b"\xff") -> bytes:
    """The beginning of an ELF file, and what is read of it."""
    inner = ikconfig(config) if config else b""
    return b"\x7fELF\x02\x01\x01".ljust(64, b"\0") + tables(symbols, last) + b"\0" * 64 + inner


def vmlinux_of_7(symbols: Sequence[tuple[int, str]]) -> bytes:
    """An ELF file of one segment with the tables of Linux 7.1."""
    head = 64 + 56
    content = tables(symbols, relative_to=TEXT + head)
    header = b"\x7fELF\x02\x01\x01".ljust(32, b"\0") + struct.pack("<Q14xHH", 64, 56, 1)
    segment = struct.pack("<IIQQQQ", 1, 5, 0, TEXT, 0, head + len(content))
    return header.ljust(64, b"\0") + segment.ljust(56, b"\0") + content
