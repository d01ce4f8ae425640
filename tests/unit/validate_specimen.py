"""A tree of a kernel's shape with one function in its lib/: enough for option sets to be compared."""

from __future__ import annotations

from pathlib import Path

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 1
EXTRAVERSION =
KBUILD_CPPFLAGS := -D__KERNEL__ -fmacro-prefix-map=$(CURDIR)/=
KBUILD_CFLAGS := -std=gnu11 -O2 -fno-PIE -mno-sse -mcmodel=kernel -mno-red-zone -fno-stack-protector -Wall -Werror=vla
kernelversion:
\t@echo 6.12.1
"""
GCD = """\
#include <linux/gcd.h>

unsigned long gcd(unsigned long a, unsigned long b)
{
#ifdef BROKEN
\treturn a;
#endif
\twhile (b) {
\t\tunsigned long rest = a % b;
\t\ta = b;
\t\tb = rest;
\t}
\treturn a;
}
"""


def tree(directory: Path) -> Path:
    files = {
        "Makefile": MAKEFILE,
        "Kconfig": "",
        "scripts/kconfig/merge_config.sh": "",
        "include/linux/kconfig.h": "#include <generated/autoconf.h>\n",
        "include/linux/build_bug.h": "",
        "include/linux/gcd.h": "unsigned long gcd(unsigned long a, unsigned long b);\n",
        "lib/math/gcd.c": GCD,
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory
