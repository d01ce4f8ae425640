"""Soaks: what is judged of one, what a hostile guest can say of one, and the verb on a QEMU that boots nothing."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import IO, Any

import jsonschema
import numpy as np
import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.console import MOST_FINDINGS, findings
from kdyno.boot.ktap import rest_of
from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Profile, Recipe, Trainee
from kdyno.measure.guest.soak import LOOKS_TO_SPARE, MOST_FAILURES, MOST_TAIL
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.definition import NoSuchParameter, NoSuchWorkload
from kdyno.measure.workload.named import NotAnAssignment
from kdyno.measure.workload.needs import Load
from kdyno.runs.sibling import NotAgain, sibling_image
from kdyno.runs.soak.growth import BLOCKS, MARGIN_MB_PER_HOUR, Slope, blocks_of, slopes
from kdyno.runs.soak.loads import DEFAULT_LOADS, LoadTwice, LoadUnclear, loads_of, needs
from kdyno.runs.soak.record import Rest, SoakKunit, SoakLoadOutcome, SoakMemory
from kdyno.runs.soak.variants import SOAK_VARIANTS, SYMBOLS, sibling
from kdyno.runs.soak.verdict import decide, taints
from tests.unit import specimen
from tests.unit.base.test_process import wait_until
from tests.unit.fake_qemu import FakeQemu
from tests.unit.kernel_toy import built, toy_source
from tests.unit.soak_specimen import ASKED, LOADS, failed, looks, memory, sound, stream, tally

DATA = Path(__file__).parents[2] / "data"

# Memory.


def slope_of(hours: float, seed: int = 1, *, per_hour: float = 0.0, swing: float = 0.0, noise: float = 0.0) -> Slope:
    """The slope of SUnreclaim that grows, swings with a period of eight minutes, and jumps."""
    generator = np.random.default_rng(seed)

    def size(at: float) -> float:
        return float(20 + per_hour * at + swing * math.sin(at / 0.133 * math.tau) + noise * generator.standard_normal())

    [slope] = slopes(blocks_of(looks(hours, size), hours * 3600))
    return slope


def test_a_leak_of_a_few_megabytes_an_hour_is_found_below_loads_that_come_and_go() -> None:
    slope = slope_of(1.0, per_hour=6.0, swing=1.0, noise=1.0)
    assert slope.growth == "grows" and slope.estimate and slope.low and slope.high
    assert slope.low < 6.0 < slope.high and abs(slope.estimate - 6.0) < 1.0


def test_memory_that_only_comes_and_goes_does_not_grow() -> None:
    growths = [slope_of(4.0, seed, swing=0.5, noise=1.0).growth for seed in range(20)]
    assert growths == ["no growth"] * 20


@pytest.mark.parametrize("seed", range(10))
def test_what_swings_more_slowly_than_a_block_is_no_growth_and_at_worst_undecided(seed: int) -> None:
    assert slope_of(1.0, seed, swing=8.0, noise=2.0).growth in ("no growth", "undecided")


def test_what_fills_during_the_warm_up_and_then_stays_is_no_growth() -> None:
    filled = looks(2.0, lambda at: 10 + 40 * min(at, 0.4))
    [slope] = slopes(blocks_of(filled, 7200))
    assert slope.growth == "no growth" and slope.estimate == 0


def test_what_grows_with_the_loads_and_is_given_back_at_rest_is_no_leak() -> None:
    growing = blocks_of(looks(1.0, lambda at: 20 + 6 * at), 3600)
    growths = {kept: slopes(growing, {"SUnreclaim": kept})[0].growth for kept in (0.5, 5.0)}
    assert growths == {0.5: "given back", 5.0: "grows"}


def test_a_few_wild_looks_move_nothing() -> None:
    calm = looks(1.0, lambda _: 20.0)
    wild = [
        look.model_copy(update={"kb": {"SUnreclaim": 10**8}}) if n % 37 == 0 else look for n, look in enumerate(calm)
    ]
    [slope] = slopes(blocks_of(wild, 3600))
    assert (slope.estimate, slope.growth) == (0, "no growth")


def test_a_short_soak_is_not_judged_for_growth() -> None:
    assert slope_of(0.25, per_hour=500).growth == "not judged"
    assert slopes(()) == ()


def test_however_long_a_soak_is_its_record_has_the_same_number_of_blocks() -> None:
    assert len(blocks_of(looks(1.0, lambda _: 1.0), 3600)) == BLOCKS
    assert len(blocks_of(looks(168.0, lambda _: 1.0, every=302), 168 * 3600)) == BLOCKS


# The verdict.


def outcome(load: str = "good", **changed: Any) -> SoakLoadOutcome:
    plain = {"load": load, "parameters": {}, "rounds": 9, "failures": 0, "mean_seconds": 1.0, "longest_seconds": 1.0}
    return SoakLoadOutcome.model_validate({**plain, "progress": "over", "told": (), **changed})


def rest(tainted: int | None = 0) -> Rest:
    return Rest(mb={}, tasks=None, files=None, tainted=tainted)


CALM = SoakMemory(before=rest(), after=rest(), blocks=(), slopes=())
OK: tuple[Any, str] = ("ok", "")


def reasons(*loads: SoakLoadOutcome, memory: SoakMemory = CALM, kunit: SoakKunit | None = None) -> tuple[str, ...]:
    verdict, why = decide(OK, loads, memory, (), kunit)
    assert (verdict == "passed") == (not why)
    return why


def test_a_soak_in_which_every_load_went_round_without_failure_has_passed() -> None:
    assert reasons(outcome(), outcome("other")) == ()


def test_a_load_that_failed_or_never_ran_fails_the_soak() -> None:
    assert reasons(outcome(failures=2)) == ("good: 2 failures in 11 rounds",)
    assert reasons(outcome(rounds=0, failures=3, progress="left-out")) == ("good could not run, and was left out",)
    assert reasons(outcome(progress="lost")) == ("good: the process that supervised it was killed",)


def test_a_soak_too_short_for_a_load_to_come_round_is_unfinished() -> None:
    verdict, why = decide(OK, (outcome(), outcome("other", rounds=0)), CALM, (), None)
    assert (verdict, why) == ("unfinished", ("other: no round ended in the time",))


def test_a_taint_that_came_during_the_soak_fails_it_and_an_older_one_does_not() -> None:
    warned = SoakMemory(before=rest(0), after=rest(1 << 9), blocks=(), slopes=())
    assert reasons(outcome(), memory=warned) == ("the kernel is tainted: a warning",)
    before = SoakMemory(before=rest(1 << 9), after=rest(1 << 9), blocks=(), slopes=())
    assert reasons(outcome(), memory=before) == ()
    assert taints(0, 1 << 12 | 1 << 18) == (), "out-of-tree modules and tests are no mistakes"
    assert taints(None, None) == ()


def test_growth_fails_a_soak_and_what_is_undecided_does_not() -> None:
    grows = Slope(field="SUnreclaim", estimate=3.0, low=2.0, high=4.0, growth="grows")
    undecided = grows.model_copy(update={"low": -2.0, "growth": "undecided"})
    for slope, why in ((grows, ("SUnreclaim grows by 3.00 MB/h (+2.00 to +4.00)",)), (undecided, ())):
        assert reasons(outcome(), memory=CALM.model_copy(update={"slopes": (slope,)})) == why
    assert MARGIN_MB_PER_HOUR == 1.0


def test_a_soak_that_was_cut_short_is_unfinished_unless_it_had_failed_already() -> None:
    lost: tuple[Any, str] = ("lost", "interrupted")
    assert decide(lost, (outcome(progress="running"),), CALM, (), None) == ("unfinished", ("interrupted",))
    verdict, why = decide(lost, (outcome(failures=1),), CALM, (), None)
    assert verdict == "failed" and why == ("good: 1 failure in 10 rounds",)


def test_tests_of_the_kernel_that_fail_or_never_end_fail_the_soak() -> None:
    kunit = SoakKunit(suites=2, passed=5, failed=1, skipped=0, failures=(), fault="2 of 3 suites have a result")
    assert reasons(outcome(), kunit=kunit) == ("KUnit: 1 test failed; 2 of 3 suites have a result",)
    assert reasons(outcome(), kunit=kunit.model_copy(update={"failed": 0, "fault": ""})) == ()


# The console.

CONSOLE = """\
[   12.000000] overlayfs: ...falling back to uuid=null.
[   13.000000] WARNING: CPU: 0 PID: 7 at mm/slub.c:1 f+0x1/0x2
[   14.000000] BUG: KFENCE: use-after-free read in f+0x1/0x2
[   15.000000][   T12] WARNING: possible circular locking dependency detected
[   16.000000] INFO: task x:1 blocked for more than 120 seconds.
[   17.000000] WARNING: CPU: 0 PID: 7 at mm/slub.c:1 f+0x1/0x2
kdyno-agent: something
[   18.000000] BUG: sleeping function called from invalid context at x.c:1
[   19.000000] BUG: unable to handle page fault for address: 0\x1b[2J
"""


def test_every_message_that_should_not_be_there_is_listed_with_what_it_means() -> None:
    assert [(finding.reason, finding.text[:18], finding.times) for finding in findings(CONSOLE)] == [
        ("warning", "WARNING: CPU: 0 PI", 2),
        ("KFENCE", "BUG: KFENCE: use-a", 1),
        ("lockdep", "WARNING: possible ", 1),
        ("hung task", "INFO: task x:1 blo", 1),
        ("BUG", "BUG: sleeping func", 1),
        ("oops", "BUG: unable to han", 1),
    ]
    assert "\x1b" not in findings(CONSOLE)[-1].text


def test_a_flood_of_different_messages_is_counted_and_not_kept() -> None:
    listed = findings("".join(f"WARNING: number {number}\n" for number in range(MOST_FINDINGS + 30)))
    assert len(listed) == MOST_FINDINGS + 1
    assert (listed[-1].reason, listed[-1].times) == ("others", 30)


def test_what_the_kernels_own_tests_provoke_is_not_held_against_it() -> None:
    console = "WARNING: of a suite\n    ok 1 inner\nok 1 suite\n[    1.000000] ok 2 other\nBUG: later\n"
    assert rest_of(console) == "BUG: later\n"
    assert rest_of("no tests\n") == "no tests\n"


# Loads.


def test_the_default_loads_are_workloads_of_kdyno_that_share_no_port_and_no_name() -> None:
    loads = loads_of(())
    assert [load.name for load in loads] == list(DEFAULT_LOADS)
    ports = [load.program().environment["port"] for load in loads if "port" in load.program().environment]
    assert len(set(ports)) == len(ports) == 2
    together = needs(loads)
    assert together.kconfig["SQUASHFS"] is True and "nginx-light" in together.packages
    assert together.kconfig["UNIX"] is True
    assert (together.memory_mb or 0) > 4000


def test_a_load_may_have_parameters_and_then_a_name_of_its_own() -> None:
    [pipe, fork] = loads_of(("stress-ng", "stress-ng   stressor=fork"))
    assert (pipe.name, fork.name) == ("stress-ng", "stress-ng stressor=fork")
    assert (pipe.program().environment["stressor"], fork.program().environment["stressor"]) == ("pipe", "fork")


@pytest.mark.parametrize(
    ("named", "error"),
    [
        (("nothing-such",), NoSuchWorkload),
        (("nginx", "nginx"), LoadTwice),
        (("",), LoadUnclear),
        (("port=1",), LoadUnclear),
        (("nginx port",), NotAnAssignment),
        (("nginx prt=1",), NoSuchParameter),
    ],
)
def test_a_load_that_is_unclear_is_refused(named: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        loads_of(named)


def test_a_sibling_has_what_the_variants_add_and_all_that_the_recipe_said() -> None:
    recipe = sibling(Recipe(opt="O3", kconfig={"KFENCE": False, "AIO": True}), SOAK_VARIANTS)
    assert recipe.opt == "O3"
    assert {"AIO", "KFENCE", "KUNIT", "PROVE_LOCKING"} <= {name for name, value in recipe.kconfig.items() if value}


@pytest.fixture
def toy(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> Image:
    """An image of the toy kernel, which has no KFENCE: PCI stands for it."""
    monkeypatch.setitem(SYMBOLS, "kfence", {"PCI": True})
    return built(Recipe(), toy_source(tmp_path, state), state)


def test_a_sibling_is_built_once_from_the_record_of_the_image(toy: Image, state: State) -> None:
    first = sibling_image(toy, ("kfence",), state, Talk(quiet=True))
    assert first.record.key != toy.record.key
    assert "CONFIG_PCI=y" in first.config.read_text() and "CONFIG_PCI=y" not in toy.config.read_text()
    made = first.program.stat().st_mtime_ns
    again = sibling_image(toy, ("kfence",), state, Talk(quiet=True))
    assert (again.record.key, again.program.stat().st_mtime_ns) == (first.record.key, made)


def test_no_sibling_is_made_of_a_source_that_is_not_what_it_was(toy: Image, state: State) -> None:
    tree = Path(toy.record.source.spec)
    (tree / "init" / "main.c").write_text((tree / "init" / "main.c").read_text() + "\n")
    with pytest.raises(NotAgain, match="have changed"):
        sibling_image(toy, ("kfence",), state, Talk(quiet=True))


def test_no_sibling_is_made_of_an_image_whose_profile_is_gone(toy: Image, state: State) -> None:
    trainee = Trainee(variant="a", recipe=Recipe(source="x", config="y"), load=Load(tests=("lmbench",)))
    tuned = toy.record.recipe.model_copy(update={"profile": Profile(use=("order",), trainee=trainee)})
    orphan = toy.model_copy(update={"record": toy.record.model_copy(update={"recipe": tuned})})
    with pytest.raises(NotAgain, match="its order is not in the state directory any more"):
        sibling_image(orphan, ("kfence",), state, Talk(quiet=True))


# The stream.


def fault_of(tmp_path: Path, *records: dict[str, Any]) -> str:
    path = tmp_path / "stream.jsonl"
    path.write_bytes(stream(*records))
    return read_stream(path, ASKED).fault or ""


def test_a_sound_soak_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_bytes(stream(memory(0, at_rest=True), failed(output=b"\xffwhy\n"), *sound()[1:]))
    report = read_stream(path, ASKED)
    assert report.complete and report.soak
    assert {name: (of.rounds, of.progress) for name, of in report.soak.tallies.items()} == dict.fromkeys(
        LOADS, (9, "over")
    )
    assert [failure.tail for failure in report.soak.failures] == [b"\xffwhy\n"]
    assert [look.at_rest for look in report.soak.looks] == [True, False, True]


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        ((tally("third", 1),), "third, which was not requested"),
        ((failed("third"),), "third, which was not requested"),
        ((failed(status=0),), "failed with status 0"),
        ((failed(output=b"x" * (MOST_TAIL + 1)),), "hex"),
        ((tally("good", 5), tally("good", 4)), "smaller than it was"),
        ((tally("good", 5, failures=2), tally("good", 6, failures=1)), "smaller than it was"),
        ((tally("good", 5, progress="over"), tally("good", 6, progress="over")), "which was over"),
        ((tally("good", 5, progress="over"), tally("good", 5)), "which was over"),
        ((tally("good", -1),), "rounds"),
        ((tally("good", 1 << 63),), "rounds"),
        ((memory(20), memory(10)), "at a time that has passed"),
        ((memory(20, Everything=5),), "kb"),
        ((memory(20, Slab=-5),), "kb"),
        ((memory(20, Slab=1 << 60),), "kb"),
        (tuple(failed() for _ in range(MOST_FAILURES + 1)), "more than 20 failures"),
        (tuple(memory(1) for _ in range(3600 // 10 + LOOKS_TO_SPARE + 1)), "more than 560 times"),
        ((tally("good", 5, progress="over"),), "where the program other still runs"),
        (({"type": "step", "program": "good", "phase": "command", "run": 0},), "which is not the next step"),
        (({"type": "step", "program": "good", "phase": "report", "run": 0},), "which is not the next step"),
        (({"type": "left", "program": "good", "processes": 0},), "which still has steps"),
    ],
)
def test_what_a_soak_can_not_say_is_a_fault(tmp_path: Path, records: tuple[dict[str, Any], ...], fault: str) -> None:
    assert fault in fault_of(tmp_path, *records)


def test_a_soak_that_nobody_asked_for_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    for record in (memory(0), tally("good", 1), failed()):
        path.write_bytes(stream(record))
        assert "requested" in (read_stream(path, replace(ASKED, soak=None)).fault or "")


# The verb.

LOAD = """\
name = "quick"
description = "a load without packages"
command = "true"
[metrics]
elapsed = { time = "elapsed" }
"""
CONFIG = (
    "".join(
        f"CONFIG_{symbol}=y\n"
        for symbol in (
            "X86_64",
            "BINFMT_ELF",
            "BLK_DEV_INITRD",
            "SYSFS",
            "VIRTIO_CONSOLE",
            "VIRTIO_MMIO",
            "VIRTIO_MMIO_CMDLINE_DEVICES",
            "SMP",
        )
    )
    + "CONFIG_NR_CPUS=4\n"
)


class Lab:
    """`kdyno soak` of a made-up image, on a QEMU that says what a test gives it."""

    def __init__(self, directory: Path, qemu: FakeQemu, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self.qemu, self.capsys = directory, qemu, capsys
        self.load = directory / "quick.toml"
        self.load.write_text(LOAD)
        self.record: dict[str, Any] = {}
        self.output = ""

    def __call__(self, *words: str, status: int, config: str = CONFIG) -> None:
        (self.directory / "image" / "config").write_text(config)
        output = self.directory / "record.json"
        use = [] if "--use" in words else ["--use", str(self.load)]
        state = ["--state", str(self.directory / "state")]
        try:
            ended = main(["soak", "abcdef", "--hours", "0.01", *use, "-o", str(output), *state, *words])
        except SystemExit as left:
            ended = int(left.code or 0)
        captured = self.capsys.readouterr()
        self.output = captured.out + captured.err
        assert ended == status, self.output
        if output.exists():
            self.record = json.loads(output.read_text())
            jsonschema.Draft202012Validator(schema("soak")).validate(self.record)
            output.unlink()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    qemu = FakeQemu(tmp_path, monkeypatch)
    place = tmp_path / "image"
    place.mkdir()
    (place / "bzImage").write_bytes(b"")
    image = Image(directory=place, record=specimen.image("gcc-12", Recipe(toolchain="gcc-12")))
    monkeypatch.setattr("kdyno.runs.subject.image_named", lambda _named, _state: image)
    monkeypatch.setattr("kdyno.boot.qemu.why_not_kvm", lambda _qemu: "none here")
    return Lab(tmp_path, qemu, capsys)


def test_a_soak_that_passes_leaves_a_record_in_the_state_directory_and_where_it_was_asked_for(lab: Lab) -> None:
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)), console=b"overlayfs: fine\n")
    lab("--cpus", "2", status=0)
    assert (lab.record["verdict"], lab.record["reasons"], lab.record["boot"]) == ("passed", [], "ok")
    [load] = lab.record["loads"]
    assert (load["load"], load["rounds"], load["mean_seconds"]) == ("quick", 9, 1.0)
    assert lab.record["hours_lived"] == 0.01
    kept = [path for path in (lab.directory / "state" / "soaks").iterdir() if path.suffix == ".json"]
    assert [json.loads(path.read_text()) for path in kept] == [lab.record]
    assert kept[0].with_suffix(".console").read_bytes() == b"overlayfs: fine\n"
    [boot] = [command for command in lab.qemu.commands if "-initrd" in command]
    assert "-smp 2" in boot and "quiet" in boot and "loglevel=5" in boot


def test_a_console_that_does_not_fit_on_the_disk_is_not_kept_in_part(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: IO[bytes], target: IO[bytes], *_: object) -> None:
        target.write(source.read()[:10])
        target.flush()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full_file(source: Path, target: Path, **_: object) -> None:
        with source.open("rb") as read, target.open("wb") as written:
            full(read, written)

    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr("shutil.copyfile", full_file)
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)), console=b"overlayfs: fine\n")
    lab("--cpus", "2", status=3)
    assert "is full" in lab.output
    assert list((lab.directory / "state" / "soaks").iterdir()) == []


def test_a_panic_in_the_middle_fails_the_soak_and_all_that_the_kernel_said_is_listed(lab: Lab) -> None:
    console = (
        b"WARNING: CPU: 0 PID: 1 at x.c:1\nBUG: kernel NULL pointer dereference\nKernel panic - not syncing: Fatal\n"
    )
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)[:3], whole=False), console=console)
    lab(status=2)
    assert lab.record["verdict"] == "failed"
    assert [finding["reason"] for finding in lab.record["console"]] == ["warning", "oops", "panic"]
    assert lab.record["boot"].startswith("failed: oops:")
    assert lab.record["loads"][0]["rounds"] == 5
    assert "did not come to its end" in lab.output


def test_a_guest_that_ends_too_soon_without_a_word_of_why_has_failed(lab: Lab) -> None:
    lab.qemu.leaves(stream=stream(memory(0, at_rest=True), whole=False))
    lab(status=2)
    assert lab.record["reasons"][0] == "the guest did not come to its end: the guest ended before the agent was done"


def test_a_load_that_fails_is_told_with_what_it_wrote_and_without_what_steers_a_terminal(lab: Lab) -> None:
    over = tally("quick", 9, failures=1, progress="over")
    failure = failed("quick", output=b"\x1b[2Jno such file\n")
    lab.qemu.leaves(stream=stream(memory(0, at_rest=True), failure, over, memory(36, at_rest=True)))
    lab(status=2)
    assert lab.record["loads"][0]["told"] == [{"phase": "command", "round": 3, "status": 1, "said": "no such file"}]
    assert "quick: 1 failure in 10 rounds" in lab.output and "\x1b" not in lab.output


def test_a_stream_that_lies_fails_the_soak(lab: Lab) -> None:
    lab.qemu.leaves(stream=stream(tally("quick", 9), tally("quick", 3)))
    lab(status=2)
    assert "smaller than it was" in lab.record["reasons"][0]


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_guest_and_leaves_a_record_of_what_there_was(lab: Lab) -> None:
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)[:3], whole=False))
    lab.qemu.hangs()

    def interrupt() -> None:
        wait_until(lab.qemu.is_hanging)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = Thread(target=interrupt)
    interrupter.start()
    lab(status=130)
    interrupter.join()
    assert (lab.record["verdict"], lab.record["reasons"]) == ("unfinished", ["interrupted"])
    assert (lab.record["boot"], lab.record["loads"][0]["rounds"]) == ("lost: interrupted", 5)
    assert lab.record["hours_lived"] == 0.005


def test_json_is_the_record(lab: Lab) -> None:
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)))
    lab("--json", "-q", status=0)
    assert json.loads(lab.output[: lab.output.rindex("}") + 1].partition("note:")[0]) == lab.record


def test_the_suites_of_a_kernel_with_kunit_run_first_and_what_they_provoke_does_not_count(lab: Lab) -> None:
    console = (DATA / "kunit" / "console.log").read_bytes()
    config = f"{CONFIG}CONFIG_KUNIT=y\n"
    lab.qemu.leaves(stream=stream(*sound(["quick"], seconds=36)), console=b"WARNING: provoked\n" + console)
    lab(status=0, config=config)
    assert lab.record["kunit"]["passed"] > 100 and lab.record["kunit"]["failed"] == 0
    assert lab.record["console"] == [] and lab.record["kernel"]["detectors"]["KUNIT"]
    assert "kunit.enable=1" in lab.record["machine"]["words"]
    lab.qemu.leaves(console=b"KTAP version 1\n1..2\nok 1 first\nWARNING: later\n")
    lab(status=2, config=config)
    assert lab.record["reasons"] == [
        "KUnit: 1 of 2 suites have a result, after first",
        "console: warning: WARNING: later",
    ]


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "1e9", "an hour"])
def test_hours_are_a_positive_number_of_at_most_a_month(lab: Lab, hours: str) -> None:
    lab(f"--hours={hours}", status=1)
    assert "is not a number of hours" in lab.output


def test_more_cpus_than_the_kernel_can_use_are_refused(lab: Lab) -> None:
    lab("--cpus", "8", status=1)
    assert "CONFIG_NR_CPUS=4" in lab.output


def test_a_kernel_without_what_the_loads_root_needs_is_refused_before_anything_is_made(lab: Lab) -> None:
    lab("--use", "nginx", status=1)
    assert "CONFIG_SQUASHFS" in lab.output and not lab.qemu.was_called


def test_a_record_that_can_not_be_written_is_refused_before_the_boot(lab: Lab) -> None:
    lab("-o", str(lab.directory / "none" / "record.json"), status=1)
    assert not lab.qemu.was_called
