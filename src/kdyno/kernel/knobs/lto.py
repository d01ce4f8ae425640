"""lto = "thin": link-time optimisation by clang and ld.lld, through Kconfig (LTO_CLANG_*)."""

from __future__ import annotations

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext

SYMBOLS = {"thin": "LTO_CLANG_THIN", "full": "LTO_CLANG_FULL"}


class LtoNeedsClang(UserError):
    message = 'lto = "{value}" needs clang: the kernel knows no link-time optimisation with {name}'
    hint = 'set toolchain = "clang-19" (or another clang that is installed) in the same variant'


def check(value: str, host: Host) -> None:
    """Raise LtoNeedsClang."""
    if value != "none" and not host.toolchain.is_clang:
        raise LtoNeedsClang(value=value, name=host.toolchain.identity.name)


def contribute(value: str, context: KnobContext) -> Contribution:  # noqa: ARG001
    """Ask for link-time optimisation; `none` leaves what the base configuration chose."""
    if value == "none":
        return Contribution()
    by = f'lto = "{value}"'
    return Contribution(
        asks=(
            KconfigRequest(symbol="LTO_NONE", value="n", by=by),
            KconfigRequest(symbol=SYMBOLS[value], value="y", by=by),
        )
    )


KNOB = Knob("lto", contribute, check, in_matrix=True)
