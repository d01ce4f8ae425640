"""`kdyno validate --micro`: a report with known answers, and two loops assembled, counted and timed."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from kdyno.base import process
from kdyno.base.cpu import Cpu
from kdyno.base.installed import ProgramMissing
from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import QEMU_USER
from kdyno.measure.cycles.micro_programs import micro_programs, programs_known_on
from kdyno.understand.validate import micro_lines
from kdyno.understand.validate.micro import MicroBench, MicroReport, is_of_family, report_of

FAMILY = load_family("znver4")
KNOWN = programs_known_on(FAMILY)
WRONG = next(name for name, (_, known) in KNOWN.items() if known.known_error)
RIGHT = next(name for name, (_, known) in KNOWN.items() if not known.known_error)
ZEN4 = Cpu(vendor="AuthenticAMD", family=25, model=17, stepping=1, name="EPYC", flags=frozenset())


def report(factors: dict[str, float], cpu: Cpu | None = None) -> MicroReport:
    """Return a report in which the model is right but for known errors, and for `factors`."""
    modelled = {
        name: known.cycles * factors.get(name, 3 if known.known_error else 1) for name, (_, known) in KNOWN.items()
    }
    native = {name: 0.98 * known.cycles for name, (_, known) in KNOWN.items()}
    return report_of(FAMILY, modelled, native if cpu else None, cpu)


def test_a_report_counts_the_programs_within_the_tolerance_and_sorts_known_errors_by_reason() -> None:
    errors = [name for name, (_, known) in KNOWN.items() if known.known_error]
    clean = report({})
    assert clean.unexpected == () and clean.close == len(KNOWN) - len(errors) and clean.median_error == 0
    assert sorted(name for names in clean.known_errors.values() for name in names) == sorted(errors)
    assert clean.cpu is None and clean.median_native_error is None


def test_a_program_that_is_wrong_without_a_reason_and_one_that_is_right_despite_one_are_unexpected() -> None:
    judged = report({RIGHT: 2, WRONG: 1})
    assert set(judged.unexpected) == {RIGHT, WRONG}
    text = "\n".join(micro_lines.lines(judged))
    assert f"not as expected: {RIGHT}: " in text and f"not as expected: {WRONG}: " in text
    assert "close despite its known error" in text


def test_the_table_has_a_column_for_this_processor_only_if_it_was_timed() -> None:
    timed, counted = (micro_lines.lines(report({}, cpu)) for cpu in (ZEN4, None))
    assert "here" in timed[0] and "here" not in counted[0]
    assert any("on this processor (EPYC): median error 2.0 %" in line for line in timed)


def test_a_processor_of_another_family_is_not_timed() -> None:
    assert is_of_family(ZEN4, FAMILY)
    assert not is_of_family(ZEN4.model_copy(update={"model": 1}), FAMILY)
    assert not is_of_family(ZEN4.model_copy(update={"vendor": "nobody"}), FAMILY)


def test_the_report_as_json_has_its_published_schema() -> None:
    document = json.loads(report({}, ZEN4).model_dump_json())
    jsonschema.Draft202012Validator(schema("validate-micro")).validate(document)


def test_without_gcc_the_message_names_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="needs gcc") as caught:
        MicroBench(micro_programs()[:1], tmp_path)
    assert "gcc" in caught.value.advice


@pytest.mark.parametrize("option", [["--source", "."], ["--config", "f"], ["--seed", "3"]])
def test_options_of_other_validations_are_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--micro", *option]) != 0
    assert f"{option[0]} has no effect with --micro" in capsys.readouterr().err


def test_a_chain_and_independent_additions_are_counted_and_timed(tmp_path: Path) -> None:
    """On whatever processor this is, a chain of multiplications takes longer than as many independent additions."""
    if "plugin" not in process.output([QEMU_USER, "--help"]):
        pytest.skip(f"{QEMU_USER} was built without plugins, as Debian 13's is")
    bench = MicroBench([KNOWN[name][0] for name in ("imul-chain", "add-independent")], tmp_path)
    modelled, native = bench.count(FAMILY), bench.time(1, lambda *_: None)
    assert modelled["imul-chain"] == pytest.approx(24, rel=0.05)
    assert modelled["add-independent"] < 4
    assert native["imul-chain"] > 2 * native["add-independent"] > 0
