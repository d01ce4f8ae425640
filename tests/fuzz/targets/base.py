"""Readers of foreign bytes: texts that are shown, and what a host says of its CPUs."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.cpu import identify, level_of, read_cpu
from kdyno.base.cpu_families import families
from kdyno.base.text import clean, clean_lines
from tests.fuzz.check import Target
from tests.fuzz.inputs import is_shown_as_it_is


def shown(path: Path) -> None:
    text = path.read_bytes().decode(errors="surrogateescape")
    line, lines = clean(text), clean_lines(text)
    assert is_shown_as_it_is(line) and "\n" not in line
    assert is_shown_as_it_is(lines)


def cpuinfo(path: Path) -> None:
    cpu = read_cpu(path)
    assert identify(cpu).family in (None, *families())
    assert level_of(cpu.flags) in range(5)


CPUINFO = b"""processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 33
model name\t: AMD Ryzen 9 5950X
stepping\t: 2
flags\t\t: lm cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave pni

processor\t: 1
"""
TARGETS = (
    Target("shown", shown, lambda: [b"\x1b]0;title\x07text\n\x1b[31mred\x1b[0m \xe2\x80\xae\xc2\x85"]),
    Target("cpuinfo", cpuinfo, lambda: [CPUINFO], (b"cpu family\t:", b"model\t\t:", b"flags\t\t:", b"\n\n")),
)  # fmt: skip
