"""What the commands say, word for word. `KDYNO_GOLDEN=write pytest tests/cli/test_golden.py` writes it anew."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import kdyno
from kdyno.base.host import host_facts
from kdyno.runs.experiment.resolve import load_experiment
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import died, slower

GOLDEN = Path(__file__).parent / "golden"
FAKELINUX = Path(__file__).parent.parent / "fakelinux"

MASKS = (
    (r"\b[0-9a-f]{64}\b", "SHA-256"),
    (r"(?<=run )[0-9a-f]{12}\b", "RUN-ID-12345"),
    (r"\b[0-9a-f]{12}(?=  replay|,| \(replay\))", "RUN-ID-12345"),
    (r"\b[0-9a-f]{12}(?=  (build|cached|shared))", "IMAGE-ID-123"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b", "YYYY-MM-DD hh:mm"),
    (re.escape(f"kdyno {kdyno.__version__}"), "kdyno VERSION"),
    (r"^.*, \d+:\d\d elapsed.*\n", ""),  # progress, which a build says every quarter of a minute
)
"""What differs from one host, day or release to the next; each mask is as wide as what it hides, for the columns."""


def masked(text: str, directory: Path) -> str:
    host = ", ".join(f"{name} {value}" for name, value in host_facts().items())
    text = text.replace(str(directory), "DIRECTORY").replace(host, "HOST")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


def check(name: str, lab: Lab, result: CommandResult) -> None:
    """Compare what was said with the golden file: standard output, then standard error and the exit status."""
    parts = [result.out, f"--- stderr\n{result.err}" if result.err else "", f"--- exit {result.status}\n"]
    text = masked("".join(parts), lab.directory)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("KDYNO_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; if it should: KDYNO_GOLDEN=write"


@pytest.fixture
def done(lab: Lab) -> Lab:
    """A finished run: one variant slower in one benchmark, one whose kernel panics in one boot."""
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    lab.recording.add("shaky", died("init-exited.log"), blocks=[1])
    assert lab("run", lab.experiment("slow", "shaky"), "-q").status == 0
    return lab


def test_help_names_every_verb(lab: Lab) -> None:
    check("help", lab, lab("--help"))


def test_help_of_a_verb_names_its_options(lab: Lab) -> None:
    check("help-run", lab, lab("run", "--help"))


def test_help_of_coverage_names_its_options(lab: Lab) -> None:
    check("help-coverage", lab, lab("coverage", "--help"))


def test_help_of_what_looks_after_the_store_names_its_options(lab: Lab) -> None:
    check("help-store", lab, lab("store", "--help"))
    check("help-store-gc", lab, lab("store", "gc", "--help"))


def test_a_run_prints_its_table(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    lab.recording.add("shaky", died("init-exited.log"), blocks=[1])
    check("run", lab, lab("run", lab.experiment("slow", "shaky")))


def test_a_second_run_says_that_nothing_is_to_do(done: Lab) -> None:
    again = done("run", done.experiment("slow", "shaky"))
    check("run-second", done, CommandResult(again.status, again.out.splitlines(keepends=True)[0] + "...\n", again.err))


def test_runs_are_listed(done: Lab) -> None:
    check("runs", done, done("runs"))


def test_an_empty_store_says_how_a_run_is_made(lab: Lab) -> None:
    check("runs-none", lab, lab("runs"))


def test_an_experiment_to_start_from_is_written(lab: Lab) -> None:
    lab.patch.chdir(lab.directory)
    check("init", lab, lab("init"))
    assert load_experiment(lab.directory / "quickstart.toml").baseline == "gcc-O2"


def test_a_file_that_exists_is_not_written_over(lab: Lab) -> None:
    path = lab.directory / "mine.toml"
    path.write_text("mine")
    check("init-exists", lab, lab("init", str(path)))
    assert path.read_text() == "mine"


def test_an_experiment_is_not_written_where_there_is_no_directory(lab: Lab) -> None:
    check("init-nowhere", lab, lab("init", str(lab.directory / "nowhere" / "mine.toml")))


def test_a_run_is_shown(done: Lab) -> None:
    check("show", done, done("show", "latest"))


def test_the_command_that_repeats_a_run_is_shown(done: Lab) -> None:
    check("show-reproduce", done, done("show", "latest", "--reproduce"))


def test_the_console_of_a_boot_is_shown(done: Lab) -> None:
    result = done("show", "latest", "--console", "shaky/1")
    check(
        "show-console",
        done,
        CommandResult(result.status, "".join(result.out.splitlines(keepends=True)[-6:]), result.err),
    )


def test_a_boot_that_is_not_there_is_named(done: Lab) -> None:
    check("show-console-unknown", done, done("show", "latest", "--console", "shaky/3"))


def test_samples_are_written_as_csv(done: Lab) -> None:
    result = done("report", "latest", "--csv")
    check(
        "report-csv", done, CommandResult(result.status, "".join(result.out.splitlines(keepends=True)[:12]), result.err)
    )


def test_a_plan_shows_images_boots_and_time(lab: Lab) -> None:
    """The toy kernel, on the machine `qemu`: nothing is built and nothing is booted."""
    lab.patch.setattr("os.cpu_count", lambda: 2)
    lab.patch.setattr("kdyno.kernel.ccache.is_installed", lambda: True)
    check("plan", lab, lab("plan", toy_experiment(lab), "-q"))


def toy_experiment(lab: Lab) -> str:
    shutil.copytree(FAKELINUX, lab.directory / "linux", ignore=shutil.ignore_patterns("__pycache__"))
    path = lab.directory / "toy.toml"
    path.write_text(
        'name = "toy"\nsource = "linux"\nconfig = "make:tinyconfig"\nbaseline = "gcc-O2"\nblocks = 6\n'
        '[variants.gcc-O2]\nopt = "O2"\n'
        '[variants.gcc-O3]\nopt = "O3"\n'
        '[variants.mitigations-off]\nextends = "gcc-O2"\ncmdline = ["mitigations=off"]\n'
        '[workload]\ntests = ["lat_syscall"]\n'
    )
    return str(path)


def test_a_plan_shows_what_of_the_host_goes_to_guests_and_into_kernels(lab: Lab) -> None:
    lab.patch.setattr("os.cpu_count", lambda: 2)
    lab.patch.setattr("kdyno.kernel.ccache.is_installed", lambda: True)
    path = Path(toy_experiment(lab))
    (lab.directory / "fix.patch").write_text("--- /dev/null\n+++ b/fs/new.c\n@@ -0,0 +1 @@\n+int new;\n")
    (lab.directory / "small.config").write_text("CONFIG_SMP=y\n")
    variants = path.read_text().replace("[variants.gcc-O3]", '[variants.gcc-O3]\npatches = ["fix.patch"]')
    variants = variants.replace(
        "[variants.mit", '[variants.small]\nextends = "gcc-O3"\nfragments = ["small.config"]\n[variants.mit'
    )
    (lab.directory / "base.config").write_text("CONFIG_SMP=y\n")
    variants = variants.replace("[variants.small]", '[variants.small]\nconfig = "file:base.config"')
    (lab.directory / "given").mkdir()
    path.write_text(variants + '[machine]\nshare = "given"\n')
    check("plan-given", lab, lab("plan", str(path), "-q"))
    path.write_text(variants + '[machine]\nshare = "nowhere"\n')
    check("plan-no-share", lab, lab("plan", str(path), "-q"))


def test_a_plan_of_what_was_built_says_so(lab: Lab) -> None:
    experiment = toy_experiment(lab)
    built = lab("build", experiment, "gcc-O2", "-q")
    assert (built.status, built.err) == (0, "")
    assert built.out.startswith("gcc-O2: ")
    output = lab("plan", experiment).out
    assert re.search(r"gcc-O2 +[0-9a-f]{12}  cached: built before", output)
    assert re.search(r"gcc-O3 +[0-9a-f]{12}  build, about \d+ s: no image", output)
    assert "  measured: the only build of make:tinyconfig by gcc here\n" in output
    assert re.search(
        r"^to do: build gcc-O3, about \d+ s \(measured: the only build", lab("build", experiment, "gcc-O3").err, re.M
    )
    assert "to do" not in lab("build", experiment).err


def test_bad_usage_says_what_is_missing(lab: Lab) -> None:
    check("bad-usage", lab, lab("report"))


def test_an_unknown_verb_is_named_with_the_nearest(lab: Lab) -> None:
    check("unknown-verb", lab, lab("reprot"))
    check("unknown-verb-none-near", lab, lab("xyz"))


def test_an_unknown_action_of_a_verb_is_named_with_the_nearest(lab: Lab) -> None:
    check("unknown-action", lab, lab("store", "gcc"))


def test_an_unknown_run_is_named_with_those_there_are(done: Lab) -> None:
    check("unknown-run", done, done("show", "ffff"))


def test_an_unknown_run_in_an_empty_store_is_named(lab: Lab) -> None:
    check("unknown-run-none", lab, lab("show", "latest"))


def test_an_unknown_key_is_named_with_its_line_and_the_nearest(lab: Lab) -> None:
    check("unknown-key", lab, lab("run", lab.experiment("slow", more="[judge]\nmargins = 0.02\n")))


def test_a_variant_without_a_recording_is_named(lab: Lab) -> None:
    check("no-recording", lab, lab("run", lab.experiment("nobody"), "-q"))


def test_a_test_that_the_agent_lacks_is_named_with_the_nearest(lab: Lab) -> None:
    more = '[workload]\ntests = ["lat_sycall"]\n'
    check("unknown-test", lab, lab("run", lab.experiment(more=more), "-q"))


def test_help_of_ab_names_its_options(lab: Lab) -> None:
    check("help-ab", lab, lab("ab", "--help"))


def test_an_ab_prints_the_toml_that_it_stands_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.directory)
    recipes = ("plain", "opt=O3,march=x86-64-v3", "git:linux#v6.12,patches=fix.patch,kconfig.PREEMPT=y")
    options = ("--source", "debian:linux-source-6.12", "-t", "lat_pipe,bw_pipe", "--blocks", "6", "--lane", "wall")
    check("ab-toml", lab, lab("ab", *recipes, *options, "--machine", "memory_mb=1024", "--toml"))


def test_an_ab_names_a_key_that_is_not_known(lab: Lab) -> None:
    check("ab-unknown-key", lab, lab("ab", "plain", "optt=O3"))
