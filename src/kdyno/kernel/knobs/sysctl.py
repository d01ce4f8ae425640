"""sysctl = { "vm.swappiness" = 10 }: settings of the running kernel, as words for its command line (sysctl.NAME=VALUE).

Linux takes them there since 5.8 (fs/proc/proc_sysctl.c), right before it starts init.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext


class SysctlUnfit(UserError):
    message = "sysctl: {name} can't be {value!r} on a kernel command line"
    hint = (
        "give a number or a word; a value with blanks, such as net.ipv4.tcp_rmem's, is possible only where nothing "
        "boots"
    )


def check(value: Mapping[str, str | int], host: Host) -> None:  # noqa: ARG001
    """Raise SysctlUnfit."""
    for name, setting in value.items():
        text = str(setting)
        if not text or not text.isprintable() or " " in text or '"' in text:
            raise SysctlUnfit(name=name, value=text)


def contribute(value: Mapping[str, str | int], context: KnobContext) -> Contribution:  # noqa: ARG001
    asks = (KconfigRequest(symbol="PROC_SYSCTL", value="y", by="sysctl"),) if value else ()
    return Contribution(asks=asks)


KNOB = Knob("sysctl", contribute, check)
