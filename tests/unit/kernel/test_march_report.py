"""What `kdyno march` says of a CPU."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from kdyno.base.cpu import Cpu
from kdyno.base.cpu_families import find, levels
from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.kernel.march.report import CompilerView, MarchReport, lines

V3 = frozenset({"lm"} | {flag for row in levels()[:3] for flag in row.flags})

CPUINFO = """\
processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model\t\t: {model}
model name\t: A CPU
flags\t\t: {flags}
"""


def report(flags: frozenset[str], level: int, **changes: object) -> MarchReport:
    view = CompilerView(
        name="gcc",
        version="12.2.0",
        knows_family=False,
        family_needs="gcc 12.3 or clang 16",
        native="znver3",
        native_adds=("avx512f", "gfni"),
        native_leaves_out=("pku",),
        choice="znver3",
        why="Zen 4 by CPUID; gcc 12.2.0 doesn't know znver4",
        uses=("cx16", "popcnt"),
    )
    made = MarchReport(
        cpu=Cpu(vendor="AuthenticAMD", family=25, model=17, stepping=1, name="AMD EPYC", flags=flags),
        family=find("znver4"),
        identified="Zen 4 by CPUID",
        level=level,
        hidden=(),
        missing=(),
        compilers=(view,),
    )
    return made.model_copy(update=changes)


def test_a_cpu_is_shown_with_its_family_its_level_and_what_compilers_make_of_it() -> None:
    text_lines = lines(report(V3 | {"hypervisor"}, 4))
    assert text_lines[0] == "CPU        AMD EPYC: AuthenticAMD, family 25, model 17, under a hypervisor"
    assert text_lines[1] == "family     znver4: Zen 4 (Ryzen 7000, EPYC 9004); known by gcc 12.3 or clang 16"
    assert text_lines[2] == "ISA level  x86-64-v4; in kernel code the same as x86-64-v3, because the rest of it is SIMD"
    assert 'gcc 12.2.0: march = "auto" is znver3' in text_lines
    assert "    native is znver3, and avx512f, gfni, without pku" in text_lines
    assert "    of it in kernel code: cx16, popcnt" in text_lines
    assert text_lines[-1] == 'for others of its kind as well: march = "x86-64-v3"'


def test_what_a_hypervisor_hides_is_named() -> None:
    text_lines = lines(report(V3 - {"bmi2"} | {"hypervisor"}, 2, hidden=("bmi2",), missing=("bmi2",)))
    assert "           the hypervisor hides bmi2, which kernel code for the family uses" in text_lines
    assert "ISA level  x86-64-v2; to x86-64-v3 it lacks bmi2" in text_lines
    assert "           this CPU doesn't show bmi2" in "\n".join(
        lines(report(V3, 2, hidden=("bmi2",), missing=("bmi2",)))
    )


def test_an_unknown_cpu_and_a_host_without_compilers_are_said() -> None:
    text_lines = lines(report(V3, 0, family=None, identified="no such row", missing=("sse2",), compilers=()))
    assert "family     unknown: no such row" in text_lines
    assert "ISA level  none: it lacks sse2" in text_lines
    assert text_lines[-1] == "no compiler is installed: `kdyno doctor` says which are needed"


def test_another_machines_cpu_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO.format(vendor="GenuineIntel", family=6, model=60, flags=" ".join(sorted(V3))))
    words = ["march", "--cpuinfo", str(path), "--json", "--state", str(tmp_path / "state")]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema("march"))
    assert (document["family"]["name"], document["level"], document["missing"][0]) == ("haswell", 3, "avx512f")
    assert {view["choice"] for view in document["compilers"]} == {"haswell"}
    assert {view["native"] for view in document["compilers"]} == {None}, "native is this host's"


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        ("fpu sse sse2", "it shows neither lm nor syscall; a CPU without lm runs no 64-bit kernel"),
        ("fpu sse sse2 syscall", "it shows no lm; a CPU without lm runs no 64-bit kernel"),
        ("fpu sse sse2 cx16 avx2", "is this cpuinfo that of a 32-bit kernel, or Cygwin's?"),
    ],
)
def test_a_cpu_without_long_mode_gets_no_name(
    flags: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO.format(vendor="GenuineIntel", family=6, model=94, flags=flags))
    words = ["march", "--cpuinfo", str(path), "--state", str(tmp_path)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert answer in shown
    assert "skylake" not in shown and "march =" not in shown
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema("march"))
    assert (document["family"], document["level"], document["compilers"]) == (None, 0, [])


def test_a_contradiction_between_model_and_features_is_shown() -> None:
    told = "Zen 4 (Ryzen 7000, EPYC 9004) or newer by its features: CPUID's model 8 is znver1, which lacks avx512f"
    cpu = Cpu(vendor="AuthenticAMD", family=23, model=8, stepping=1, name="AMD", flags=V3 | {"avx512f"})
    assert f"           {told}" in lines(report(V3, 4, cpu=cpu, identified=told))


def test_what_is_no_cpuinfo_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm").write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert main(["march", "--cpuinfo", str(tmp_path / "arm")]) == 1
    assert "it has no `vendor_id`, so it does not describe an x86 CPU" in capsys.readouterr().err


def test_the_table_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["march", "list"]) == 0
    shown = capsys.readouterr().out
    assert "znver4 " in shown and "gcc 12.3 or clang 16" in shown
    assert main(["march", "list", "--json"]) == 0
    assert {"znver4", "x86-64-v3"} <= {row["name"] for row in json.loads(capsys.readouterr().out)}


def test_a_tree_that_the_patch_is_not_for_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["march", "patch", "--tree", str(tmp_path)]) == 1
    assert "is not a kernel source tree: it has no readable Makefile" in capsys.readouterr().err
    assert main(["march", "patch", "--tree", str(tmp_path / "nowhere")]) == 1


@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "sparse"])
def test_what_never_ends_is_no_cpuinfo(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    assert main(["march", "--cpuinfo", str(path)]) == 1
    assert f"can't read the CPU from {path}: " in capsys.readouterr().err
