"""The emulated PMU as the machine `qemu` uses it: loaded into every boot, read when the boot is over."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdyno.base.errors import InfrastructureError, KdynoError, UserError
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.plugin import why_no_plugin
from kdyno.kernel.images import content_digest
from kdyno.measure.cycles.samples import RegionMissing, convert_samples, convert_units
from kdyno.measure.guest.pmu import RECORD, PmuConfig, find_plugin, plugin_words
from kdyno.measure.guest.symbols import symbols_file

if TYPE_CHECKING:
    from kdyno.measure.cycles.family import Family


INTEL = "GenuineIntel"


class PmuOutsideModelLane(UserError):
    message = 'the PMU is emulated: [machine.pmu] does not go with lane = "{lane}"'
    hint = 'take lane = "model", or leave [machine.pmu] out'


class CyclesNeedAllEvents(UserError):
    message = 'cycles are modelled from all events, but [machine.pmu] says events = "{events}"'
    hint = 'say events = "all", or clock = "instructions"'


class UserCodeNeedsAllEvents(UserError):
    message = 'scope = "all" looks at accesses to memory, but [machine.pmu] says events = "{events}"'
    hint = 'say events = "all", or leave the scope out'


class VmlinuxMissing(UserError):
    message = "the emulated PMU needs the vmlinux that {kernel} was made from"
    hint = "let kdyno build the kernel: it keeps both"


class QemuWithoutPlugins(InfrastructureError):
    message = "{qemu} can't load the PMU plugin {plugin}: {why}"
    hint = "Debian's qemu-system-x86 can; a QEMU of your own needs configure --enable-plugins and version 7.2 or newer"


class RecordMissing(InfrastructureError):
    message = "the PMU plugin left no record"
    hint = "QEMU must come to its own end; its plugin writes the record then"


def family_of(config: PmuConfig) -> Family:
    """Its family, read from its file. Raises UnknownFamily and BadFamily."""
    from kdyno.measure.cycles.family import load_family

    return load_family(config.family)


class Pmu:
    """What [machine.pmu] asks for, on this host."""

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
        if why := why_no_plugin(qemu, self.plugin):
            raise QemuWithoutPlugins(qemu=qemu, plugin=self.plugin, why=why)

    def facts(self) -> dict[str, Any]:
        """What of it decides the samples."""
        scope = {"pmu_scope": self.config.scope} if self.config.scope != "kernel" else {}
        return scope | {
            "pmu_plugin": content_digest(self.plugin),
            "pmu_events": self.config.events,
            "pmu_clock": self.config.clock,
            "pmu_family": self.family.name,
            "pmu_family_file": content_digest(self.family.path),
        }

    def notices(self) -> tuple[str, ...]:
        if self.config.clock == "cycles":
            clock = f"cycles are {self.family.caption()}"
        else:
            clock = "instructions are those of the measured loops, without interrupts, REP counted once"
        beside = "user code's accesses share the modelled caches and TLBs, and are in no sample of time"
        return (clock, beside) if self.config.scope == "all" else (clock,)

    def unlike(self, cpu: str, vendor: str, has_smap: bool) -> str | None:
        """What the guest's CPU has otherwise than the family's; None: nothing that decides paths."""
        family = self.family.cpu
        differences = []
        if vendor != family.vendor:
            differences.append(f"it is of {vendor}, not of {family.vendor}")
        # Linux takes all of Intel's for vulnerable that don't deny it (none does under TCG), and none of AMD's.
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
        """QEMU's words for a boot; the symbols are left in its directory. Raises VmlinuxMissing and VmlinuxUnfit."""
        if order.vmlinux is None:
            raise VmlinuxMissing(kernel=order.kernel)
        if order.vmlinux not in self._symbols:
            listed = symbols_file(order.vmlinux, order.symbols)
            self._symbols[order.vmlinux] = (listed, content_digest(order.vmlinux))
        listed, image = self._symbols[order.vmlinux]
        symbols = order.directory / "pmu.symbols"
        symbols.write_text(listed, encoding="utf-8")
        return plugin_words(
            self.plugin,
            out=order.directory / RECORD,
            scope=self.config.scope,
            events=self.config.events,
            symbols=symbols,
            image=image,
            geometry=self.family.path if self.config.events != "edges" else None,
        )

    def applied(self, end: BootEnd, path: Path) -> BootEnd:
        """The end of a boot with what the PMU counted as its samples; a boot that is not ok has only other units.

        Without a sound record the boot is lost: the instrument failed, not the kernel. A loop that was entered and
        never left is the kernel's doing, and so is more than the plugin can keep. A boot that timed nothing itself, as
        programs don't, needs no regions.
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
    """A reason outlives the directory of its boot."""
    return str(error).replace(str(path), path.name)
