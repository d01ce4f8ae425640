"""`kdyno calibrate`, with measurements that are made up, and programs in the place of probe and QEMU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.installed import ProgramMissing
from kdyno.base.process import ToolFailed
from kdyno.base.talk import Talk
from kdyno.cli.calibrate import lines
from kdyno.cli.main import main
from kdyno.measure.cycles import measure as measuring
from kdyno.measure.cycles.calibrate import calibrate, calibrated_family, format_toml
from kdyno.measure.cycles.events import UNSEEN
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import FittedProgram, NoUserPlugins, ProbeBroken, last_iterations, measure
from kdyno.measure.guest.pmu_record import PmuRecord
from tests.unit.cycles_specimen import family, measured
from tests.unit.pmu_specimen import specimen

PROBE = """\
#!/bin/sh
case "$*" in
"list --json")
    echo '{"programs":[{"program":"a","kind":"k","role":"fit","about":"x"},'
    echo '{"program":"b","kind":"k","role":"held-out","about":"y"}]}' ;;
"run all --times 3")
    CYCLES=$(cat "${0%/*}/cycles")
    echo '{"program":"a","kind":"k","role":"fit","cycles":100,"ticks_per_cycle":0.8,"times":3}'
    echo '{"program":"b","kind":"k","role":"held-out","cycles":'$CYCLES',"ticks_per_cycle":0.8,"times":3}' ;;
*--marked) echo '{"program":"a","kind":"k","role":"fit","benchmark":0,"times":6}' ;;
esac
"""


def test_a_calibration_fits_to_some_programs_and_is_judged_by_the_others() -> None:
    calibration = calibrate(measured(), family())
    assert calibration.held_out.programs == calibration.fitted.programs == 12
    assert calibration.held_out.spearman > 0.9 and calibration.held_out.median_error < 0.15
    assert set(calibration.kept) == set(UNSEEN)
    assert calibration.weights["io_exits"] == family().weights["io_exits"]
    assert calibration.spread == pytest.approx([0.04] * 24)


def test_what_was_not_fitted_to_does_not_change_the_weights() -> None:
    same = measured()
    other = measured()
    held_out = [program.role == "held-out" for program in other.programs]
    other.passes[:, held_out] *= 3
    assert calibrate(same, family()).weights == calibrate(other, family()).weights


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = calibrated_family(calibrate(measured(), family()), "mine", 'A "CPU"', "2026-01-02")
    (tmp_path / "mine.toml").write_text(format_toml(made), encoding="utf-8")
    read = load_family(f"file:{tmp_path / 'mine.toml'}")
    assert read.model == made.model and read.l2 == made.l2 and read.march == made.march
    assert re.fullmatch(
        r"modelled, mine-2: median error \d+ % on 12 held-out programs, Spearman 0\.\d\d", read.caption()
    )
    assert format_toml(read) == format_toml(made)


def test_the_text_has_weights_programs_quality_and_the_worst() -> None:
    text = "\n".join(lines(calibrate(measured(), family())))
    for part in (
        r"^weights of generic, in cycles   fitted    before$",
        r"^  stall_memory_chained +\d\.\d{3}     1\.000$",
        r"^  io_exits +1500\.000  1500\.000  kept: no program determines it$",
        r"^chase-0 +chase +fit +[\d,]+ +[\d,]+ +[+-]\d+ % +4 %$",
        r"^native passes differ by 4 % \(median\), at most 4 %$",
        r"^held-out: 12 programs, Spearman 0\.\d\d \(cycles per instruction -?0\.\d\d; "
        r"instructions alone -?[01]\.\d\d\), "
        r"median error \d+ %, 90 % within \d+ %$",
        r"^median error by kind, held-out: \w+ \d+ %, \w+ \d+ %, \w+ \d+ %$",
        r"^  \w+-\d +\d\.\d times too (much|little)$",
    ):
        assert re.search(part, text, re.MULTILINE), part


def test_the_verb_prints_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measuring, "measure", lambda *_args, **_more: measured())
    words = ["calibrate", "--family", "generic", "-o", str(tmp_path / "mine.toml"), "-q"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["held_out"]["programs"] == 12 and len(document["judged"]) == 24 and document["family"] == "generic"
    assert load_family(f"file:{tmp_path / 'mine.toml'}").name == "mine"
    assert main(["calibrate", "--family", "znver44"]) == 1
    assert "did you mean znver4?" in capsys.readouterr().err


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a probe that says what the shell makes it say, and a plugin."""
    probe = tmp_path / "kdyno-probe"
    probe.write_text(PROBE)
    probe.chmod(0o755)
    (tmp_path / "plugin.so").touch()
    monkeypatch.setattr(measuring, "find_probe", lambda: probe)
    monkeypatch.setattr(measuring, "find_plugin", lambda: tmp_path / "plugin.so")
    (tmp_path / "cycles").write_text("200")
    return tmp_path


def counted(*regions: int) -> PmuRecord:
    """A record whose regions have two iterations, the first with other counts."""
    record = specimen()
    region = record.regions[min(record.regions)]
    events = len(record.names)
    iterations = {0: np.zeros((3, events), np.uint64), 1: np.full((3, events), 5, np.uint64)}
    made = {index: type(region)(index, iterations, region.contexts, region.stacks) for index in regions}
    return type(record)(**{**vars(record), "regions": made})


def test_programs_are_timed_and_the_last_iteration_is_counted(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = tools / "qemu"
    qemu.write_text(
        f'#!/bin/sh\necho "$*" >> {tools}/words\n'
        'echo \'{"program":"a","kind":"k","role":"fit","benchmark":0,"times":6}\'\n'
    )
    qemu.chmod(0o755)
    monkeypatch.setattr(measuring, "QEMU_USER", str(qemu))
    monkeypatch.setattr(measuring, "read_pmu_record", lambda _path: counted(0, 1))
    measured = measure(family(), times=3, passes=2, talk=Talk(quiet=True))
    assert measured.programs == (FittedProgram("a", "k", "fit"), FittedProgram("b", "k", "held-out"))
    assert measured.native.tolist() == [100, 200] and (measured.counts == 15).all()
    assert "scope=user,events=all,geometry=" in (tools / "words").read_text()


def test_without_qemu_its_package_is_named(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "QEMU_USER", str(tools / "nothing"))
    with pytest.raises(ProgramMissing, match="a calibration needs") as error:
        measure(family(), times=3, passes=1, talk=Talk(quiet=True))
    assert "qemu-user" in error.value.advice


def test_a_qemu_that_fails_is_quoted(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = tools / "qemu"
    qemu.write_text("#!/bin/sh\necho kdyno-pmu: no geometry >&2; exit 1\n")
    qemu.chmod(0o755)
    monkeypatch.setattr(measuring, "QEMU_USER", str(qemu))
    with pytest.raises(ToolFailed, match="kdyno-pmu: no geometry"):
        measure(family(), times=3, passes=1, talk=Talk(quiet=True))


def test_a_program_without_a_time_or_a_count_is_named(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tools / "cycles").write_text("0")
    monkeypatch.setattr(measuring, "QEMU_USER", str(tools / "kdyno-probe"))
    monkeypatch.setattr(measuring, "read_pmu_record", lambda _: counted(0, 1))
    with pytest.raises(ProbeBroken, match="no time for b"):
        measure(family(), times=3, passes=1, talk=Talk(quiet=True))
    with pytest.raises(ProbeBroken, match="counted nothing for b"):
        last_iterations(counted(0), (FittedProgram("a", "k", "fit"), FittedProgram("b", "k", "held-out")))


def test_a_qemu_without_plugins_is_said_before_anything_is_timed(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = tools / "qemu-x86_64"
    qemu.write_text("#!/bin/sh\necho \"qemu: unknown option 'plugin'\" >&2\nexit 1\n")
    qemu.chmod(0o755)
    monkeypatch.setattr(measuring, "QEMU_USER", str(qemu))
    (tools / "cycles").write_text("0")
    with pytest.raises(NoUserPlugins, match="built without plugins"):
        measure(family(), times=3, passes=1, talk=Talk(quiet=True))
