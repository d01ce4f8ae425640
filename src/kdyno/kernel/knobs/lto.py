"""lto = "thin": link-time optimisation by clang and ld.lld, through Kconfig (LTO_CLANG_*).

ld.lld compiles where vmlinux.o is linked. If the compiler makes the last link (ARCH=um), that is by `ld`, which doesn't
read what clang compiles for that: the one object that is made after vmlinux.o is compiled as without it.
"""

from __future__ import annotations

from kdyno.base.errors import UserError
from kdyno.kernel import lkd
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext

SYMBOLS = {"thin": "LTO_CLANG_THIN", "full": "LTO_CLANG_FULL"}
LATE_OBJECT = "CFLAGS_REMOVE_version-timestamp.o=$(CC_FLAGS_LTO)"
"""A word of make. scripts/link-vmlinux.sh makes this object between vmlinux.o and vmlinux."""


class LtoNeedsClang(UserError):
    message = 'lto = "{value}" needs clang: the kernel knows no link-time optimisation with {name}'
    hint = 'set toolchain = "clang-19" (or another clang that is installed) in the same variant'


def check(value: str, host: Host) -> None:
    """Raise LtoNeedsClang."""
    if value != "none" and not host.toolchain.is_clang:
        raise LtoNeedsClang(value=value, name=host.toolchain.identity.name)


def contribute(value: str, context: KnobContext) -> Contribution:
    """Ask for link-time optimisation; `none` leaves what the base configuration chose."""
    if value == "none":
        return Contribution()
    by = f'lto = "{value}"'
    is_linked_by_compiler = context.arch.linked_by == "compiler"
    return Contribution(
        make=(LATE_OBJECT,) if is_linked_by_compiler else (),
        environment={lkd.LTO_LINKER: context.toolchain.linker} if is_linked_by_compiler else {},
        asks=(
            KconfigRequest(symbol="LTO_NONE", value="n", by=by),
            KconfigRequest(symbol=SYMBOLS[value], value="y", by=by),
        ),
    )


KNOB = Knob("lto", contribute, check, in_matrix=True)
