"""The emulated PMU: its settings in an experiment, the plugin that QEMU loads, and its counts as samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.base.installed import BUILT_WITH_KDYNO, ProgramMissing

Events = Literal["edges", "all", "trace"]
Clock = Literal["cycles", "instructions"]
Scope = Literal["kernel", "all"]
PluginScope = Literal["kernel", "all", "user"]
"""As the plugin knows it; `user`: the whole of a program under user-mode emulation."""
DEFAULT_FAMILY = "sapphirerapids"
"""The default CPU family of the lane model: the CPU of guests, and the hardware that is emulated and modelled."""

PACKAGE = Path(__file__).parents[2]
"""The directory of kdyno, where an installation puts the plugin."""
RECORD = "pmu.kpmu"
"""Name of the PMU record in the directory of a boot, and in a recording."""


class PmuConfig(Frozen):
    """The emulated PMU of the model lane: counts of the measured loops alone, and cycles modelled from them."""

    events: Events = "all"
    """`edges`: blocks and branches, cheap; `all`: caches, TLBs and predictor too, which cycles are modelled from;
    `trace`: all, and the sequence of blocks of an iteration of each benchmark, for trying out layouts.
    """
    scope: Scope = "kernel"
    """Whose accesses to memory go through the modelled caches and TLBs: `kernel`: the kernel's alone; `all`: user
    code's too, counted separately, which takes longer and needs events = "all".
    """
    family: str = DEFAULT_FAMILY
    """The CPU family whose caches are emulated and whose weights turn events into cycles: a name, or `file:PATH`."""
    clock: Clock = "cycles"
    """The unit of a sample: modelled cycles, or instructions of kernel and user code, REP counted once."""


def find_plugin(name: str = "pmu", needed_for: str = "the emulated PMU") -> Path:
    """Return the shared object that QEMU loads: $KDYNO_PMU_PLUGIN, else the one installed in kdyno; likewise for other
    names. Raise ProgramMissing.

    A wheel has it as kdyno_pmu.abi3.so; an editable install gives it the suffix of the Python that made it, so that a
    checkout may hold several. The newest is that of the last installation.
    """
    if named := os.environ.get(f"KDYNO_{name.upper()}_PLUGIN"):
        pattern, plugins = Path(named).absolute(), [Path(named).absolute()]
    else:
        pattern = PACKAGE / f"kdyno_{name}.*.so"
        plugins = list(pattern.parent.glob(pattern.name))
    existing = [plugin for plugin in plugins if plugin.is_file()]
    if not existing:
        raise ProgramMissing(
            needed_for=needed_for,
            program="kdyno's plugin for QEMU",
            looked_in=f"no {pattern}",
            way_out=BUILT_WITH_KDYNO,
        )
    return max(existing, key=lambda plugin: plugin.stat().st_mtime_ns)


def plugin_words(
    plugin: Path,
    *,
    out: Path,
    events: Events,
    symbols: Path,
    image: str,
    geometry: Path | None,
    scope: PluginScope = "kernel",
) -> tuple[str, ...]:
    """Return the arguments of QEMU that load the plugin for a kernel; `image` is the SHA-256 of its vmlinux."""
    options = [f"out={out}", f"scope={scope}", f"events={events}", f"symbols={symbols}", f"image={image}"]
    if geometry:
        options.append(f"geometry={geometry}")
    # In QEMU's options a comma begins the next one, and two commas are one.
    return ("-plugin", ",".join(option.replace(",", ",,") for option in (str(plugin), *options)))
