"""A proof by a boot that KVM works here: even if /dev/kvm opens, a guest may hang forever.

The proof is a ROM that takes a CPU from the reset vector into long mode with paging, and then ends QEMU through its
isa-debug-exit device. On a working host that takes some hundredths of a second.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

from kdyno.base.process import attempt, spawn

ROM_BYTES = 0x10000
PROOF_STATUS = 85
TIME_LIMIT = 2.0
"""The time limit of the proof under KVM in seconds, in addition to the start of QEMU on this host."""
STARTS_OF_QEMU = 5
"""The time to start a guest, in units of `--version`; on a slow or emulated host that is seconds."""

# data/kvm-proof.S, assembled.
ROM_START = bytes.fromhex(
    "fafc31c08ed88ec0bf0010b90018f3abc70600100320c70600200330c70600308300"
    "2e660f0116780066b8200000000f22e066b8001000000f22d866b9800000c00f32660d00010000"
    "0f300f20c0660d010000800f22c066ea5f000f000800b02ae6f4f4ebfd66900000000000000000"
    "ffff0000009aaf000f0068000f00"
)
ROM_RESET_VECTOR = bytes.fromhex("ea000000f0")


def proof_rom() -> bytes:
    """Return the ROM: code at its start, and the jump to it at the reset vector, 16 bytes before its end."""
    body = ROM_START.ljust(ROM_BYTES - 16, b"\0") + ROM_RESET_VECTOR
    return body.ljust(ROM_BYTES, b"\0")


def why_not_kvm(qemu: str, accel: Literal["kvm", "tcg"] = "kvm", limit: float = TIME_LIMIT) -> str | None:
    """Boot the proof. Return why KVM cannot be used here; None if it works."""
    if accel == "kvm":
        if not Path("/dev/kvm").exists():
            return "/dev/kvm does not exist"
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return "/dev/kvm is not readable and writable for this user, who may not be in group kvm"
    start = time.monotonic()
    attempt([qemu, "--version"])
    loading = time.monotonic() - start
    with tempfile.TemporaryDirectory(prefix="kdyno-kvm-") as scratch:
        rom = Path(scratch, "proof.rom")
        rom.write_bytes(proof_rom())
        words = [qemu, "-M", "pc", "-nodefaults", "-no-user-config", "-display", "none", "-accel", accel]
        words += ["-bios", str(rom), "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
        with spawn(words, cwd=Path(scratch), stdout=subprocess.PIPE) as child:
            try:
                output, _ = child.communicate(timeout=limit + STARTS_OF_QEMU * loading)
            except subprocess.TimeoutExpired:
                return f"/dev/kvm opens, but a guest that should end at once still hung after {limit:g} s"
    if child.returncode == PROOF_STATUS:
        return None
    return f"QEMU ended with status {child.returncode}: {output.decode(errors='replace').strip()[-300:]}"
