"""The emulated PMU of the machine `qemu`: loaded into every boot, and read after the boot."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.base.machine_facts import PMU_CLOCK, PMU_EVENTS
from kdyno.base.names import absolute
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.plugin import NO_MACHINE, why_no_plugin
from kdyno.kernel.images import content_digest
from kdyno.measure.cycles.samples import RegionMissing, convert_samples, convert_units
from kdyno.measure.guest.pmu import RECORD, PluginScope, PmuConfig, find_plugin, plugin_words
from kdyno.measure.guest.symbols import symbols_file

if TYPE_CHECKING:
    from kdyno.measure.cycles.family import Family


INTEL = "GenuineIntel"


class PmuOutsideModelLane(UserError):
    message = '[machine.pmu] cannot be combined with lane = "{lane}": the PMU is emulated'
    hint = 'set lane = "model", or remove [machine.pmu]'


class CyclesNeedAllEvents(UserError):
    message = 'cycles require events = "all", but [machine.pmu] has events = "{events}"'
    hint = 'set events = "all", or clock = "instructions"'


class UserCodeNeedsAllEvents(UserError):
    message = 'scope = "all" requires events = "all" for accesses to memory, but [machine.pmu] has events = "{events}"'
    hint = 'set events = "all", or remove the scope'


class VmlinuxMissing(UserError):
    message = "the emulated PMU requires the vmlinux from which {kernel} was made"
    hint = "let kdyno build the kernel: it stores both files"


class QemuWithoutPlugins(InfrastructureError):
    message = "{qemu} cannot load the PMU plugin {plugin}: {why}"
    hint = "use Debian's qemu-system-x86, or build QEMU 7.2 or newer with configure --enable-plugins"


class RecordMissing(InfrastructureError):
    message = "the PMU plugin wrote no record"
    hint = "do not kill QEMU: its plugin writes the record when QEMU ends"


def family_of(config: PmuConfig) -> Family:
    """Return the CPU family of the PMU, read from its file. Raises UnknownFamily and BadFamily."""
    from kdyno.measure.cycles.family import load_family

    return load_family(config.family)


def located_pmu(config: PmuConfig | None, base: Path) -> PmuConfig | None:
    """Return the settings with an absolute path of the family's file. Raises NameUnfit."""
    if config is None or not config.family.startswith("file:"):
        return config
    return config.model_copy(update={"family": f"file:{absolute(config.family.removeprefix('file:'), base)}"})


class Pmu:
    """The PMU of [machine.pmu], on this host."""

    def __init__(self, config: PmuConfig) -> None:
        if config.clock == "cycles" and config.events == "edges":
            raise CyclesNeedAllEvents(events=config.events)
        if config.scope == "all" and config.events == "edges":
            raise UserCodeNeedsAllEvents(events=config.events)
        self.config = config
        self._symbols: dict[Path, tuple[str, str]] = {}

    @cached_property
    def plugin(self) -> Path:
        return find_plugin()

    @cached_property
    def family(self) -> Family:
        return family_of(self.config)

    def require(self, qemu: str) -> None:
        """Raise ProgramMissing or QemuWithoutPlugins, before anything is built or booted."""
        if why := why_no_plugin([qemu, *NO_MACHINE], self.plugin):
            raise QemuWithoutPlugins(qemu=qemu, plugin=self.plugin, why=why)

    def why_not_in_user_mode(self, qemu: str) -> str | None:
        """Return why this qemu-x86_64 doesn't load the plugin; None if it does. Raises ProgramMissing."""
        return why_no_plugin([qemu], self.plugin, ["/bin/true"])

    def facts(self) -> dict[str, Any]:
        """Return the facts that determine the samples."""
        scope = {"pmu_scope": self.config.scope} if self.config.scope != "kernel" else {}
        return scope | {
            "pmu_plugin": content_digest(self.plugin),
            PMU_EVENTS: self.config.events,
            PMU_CLOCK: self.config.clock,
            "pmu_family": self.family.name,
            "pmu_family_file": content_digest(self.family.path),
        }

    def notices(self) -> tuple[str, ...]:
        if self.config.clock == "cycles":
            clock: tuple[str, ...] = (f"cycles are {self.family.caption()}", self.family.gains_note())
        else:
            clock = ("instructions are those of the measured loops, without interrupts, REP counted once",)
        beside = "user code's accesses share the modelled caches and TLBs, and are in no sample of time"
        return (*clock, beside) if self.config.scope == "all" else clock

    def unlike(self, cpu: str, vendor: str, has_smap: bool) -> str | None:
        """Return how the guest's CPU differs from the family in ways that change kernel paths; None if it doesn't."""
        family = self.family.cpu
        differences = []
        if vendor != family.vendor:
            differences.append(f"it is of {vendor}, not of {family.vendor}")
        # Linux takes Intel CPUs for vulnerable unless they deny it (none does under TCG), and AMD CPUs never.
        isolates = vendor == INTEL
        if isolates != family.pti:
            differences.append(
                "it gets isolated page tables, and they don't" if isolates else "it gets no isolated page tables"
            )
        if has_smap != family.smap:
            differences.append("it has SMAP, and they don't" if has_smap else "it lacks SMAP, which they have")
        if not differences:
            return None
        return f"kernel paths are those of the CPU {cpu}, cycles of {self.family.name}'s: {'; '.join(differences)}"

    def words(self, order: BootOrder) -> tuple[str, ...]:
        """Return QEMU's options; the symbols are in the boot's directory. Raises VmlinuxMissing and VmlinuxUnfit."""
        return self._words(order, self.config.scope)

    def user_words(self, order: BootOrder) -> tuple[str, ...]:
        """Return the options of qemu-x86_64 for a kernel that is a process. Raises VmlinuxMissing and VmlinuxUnfit."""
        return self._words(order, "user")

    def _words(self, order: BootOrder, scope: PluginScope) -> tuple[str, ...]:
        if order.vmlinux is None:
            raise VmlinuxMissing(kernel=order.kernel)
        if order.vmlinux not in self._symbols:
            listed = symbols_file(order.vmlinux, order.symbols, is_process=scope == "user")
            self._symbols[order.vmlinux] = (listed, content_digest(order.vmlinux))
        listed, image = self._symbols[order.vmlinux]
        symbols = order.directory / "pmu.symbols"
        symbols.write_text(listed, encoding="utf-8")
        return plugin_words(
            self.plugin,
            out=order.directory / RECORD,
            scope=scope,
            events=self.config.events,
            symbols=symbols,
            image=image,
            geometry=self.family.path if self.config.events != "edges" else None,
        )

    def applied(self, end: BootEnd, path: Path) -> BootEnd:
        """Return the end of a boot with the PMU's counts as its samples; a boot that is not ok only has other units.

        Without a valid record the boot is lost: the instrument failed, not the kernel. The kernel is at fault if a loop
        was entered and never left, or if there is more than the plugin can store. A boot that times nothing itself,
        such as one of programs, needs no regions.
        """
        from kdyno.measure.guest.pmu_record import (
            MarkersNeverClosed,
            NoRegions,
            PluginGaveUp,
            PmuRecordDamaged,
            read_pmu_record,
            with_benchmarks,
        )

        report = end.report
        in_our_units = report.model_copy(update={"benchmarks": convert_units(report.benchmarks, self.config.clock)})
        end = replace(end, report=in_our_units)
        if end.status != "ok":
            return end
        try:
            if not path.exists():
                raise RecordMissing()
            with_benchmarks(path, [benchmark.name for benchmark in report.benchmarks], path)
            is_timed = any(sample.elapsed is not None for sample in report.samples)
            counts = read_pmu_record(path, needs_regions=is_timed)
            samples = convert_samples(report.samples, report.benchmarks, counts, self.family, self.config.clock)
        except (MarkersNeverClosed, PluginGaveUp) as error:
            return replace(end, status="failed", reason=_reason(error, path))
        except (RecordMissing, PmuRecordDamaged, NoRegions, RegionMissing) as error:
            return replace(end, status="lost", reason=_reason(error, path))
        return replace(end, report=in_our_units.model_copy(update={"samples": samples}), pmu=path)


def _reason(error: KdynoError, path: Path) -> str:
    """Return an error as a reason without the directory of its boot, which is removed."""
    return str(error).replace(str(path), path.name)
