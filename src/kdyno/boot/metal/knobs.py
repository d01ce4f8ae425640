"""The knobs of a box that are set for measuring: after each start of a kernel of a run, on the box, in its /sys and
/proc. Nothing restores them: the restart at the end of the boot does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.boot.host.knobs import KNOBS, Setting
from kdyno.boot.host.look import knob_fact
from kdyno.boot.metal.ssh import BoxUntrusted, Ssh

SETTABLE = {knob.name: knob for knob in KNOBS if knob.name not in ("irqs", "aslr")}
"""By name: the knobs of a box. Interrupts depend on isolated CPUs, and addresses are the workload's matter."""
MOST_OUTPUT = 4_000_000
LINE = re.compile(r"([0-9]{1,2}) (.{0,100})")

SET = """
number=0
while [ $# -gt 1 ]; do
    for file in $1; do
        [ -f "$file" ] || continue
        { printf '%s\\n' "$2" >"$file"; } 2>/dev/null
        printf '%s %s\\n' "$number" "$(cat "$file")"
    done
    number=$((number + 1)); shift 2
done
exit 0
"""
"""Writes a value to all files of a pattern, and prints the number of the pattern with what each file has then."""


class KnobsMissing(UserError):
    message = "{host} lacks the host knobs {missing}: its kernel {release} has no files for them"
    hint = "remove them from `knobs` in [machine]; `kdyno doctor --host` there shows what a box has"


class KnobsRefused(UserError):
    message = "the kernel {release} on {host} did not take the host knob {knob}: {why}"
    hint = "remove it from `knobs` in [machine], or measure kernels that have its driver"


def require_knobs(root: Path, names: Sequence[str], host: str, release: str) -> None:
    """Raise KnobsMissing unless the box has these knobs, by copies of its files below `root`."""
    missing = [name for name in names if knob_fact(root, SETTABLE[name]).status == "absent"]
    if missing:
        raise KnobsMissing(host=host, missing=", ".join(missing), release=release)


def set_knobs(ssh: Ssh, names: Sequence[str], release: str) -> None:
    """Set knobs on the box to their values for measuring. Raises KnobsRefused and what ssh raises."""
    settings = [
        (name, setting, value)
        for name in names
        for setting in SETTABLE[name].settings
        if (value := setting.wanted(Path())) is not None
    ]
    if not settings:
        return
    words = [word for _, setting, value in settings for word in (f"/{setting.pattern}", value)]
    result = ssh.run(ssh.script(SET, *words), most=MOST_OUTPUT)
    known = set()
    for line in result.output.splitlines():
        match = LINE.fullmatch(line)
        if match is None or int(match[1]) >= len(settings):
            raise BoxUntrusted(host=ssh.host, what="the request to set knobs", why=repr(line[:80]))
        name, setting, wanted = settings[int(match[1])]
        known.add(name)
        if problem := _problem(setting, match[2], wanted):
            raise KnobsRefused(host=ssh.host, release=release, knob=name, why=problem)
    for name in names:
        if name not in known:
            raise KnobsRefused(host=ssh.host, release=release, knob=name, why="it has no file for it")


def _problem(setting: Setting, content: str, wanted: str) -> str:
    """Return why the content of a file isn't good for measuring; empty if it is."""
    value = setting.reads(content)
    if not setting.can_be(value):
        return f"its file has {content[:40]!r}"
    is_good = value in setting.also_good or setting.same(value, wanted)
    return "" if is_good else f"it is {setting.label(value)}, not {setting.label(wanted)}"
