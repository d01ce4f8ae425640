"""The sections of a report: each is shown where it has something to show, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kdyno.report.packing import TEMPLATES
from kdyno.report.page import environment
from kdyno.report.sections import SECTIONS, section_lines, shown_sections
from tests.unit import foreign_specimen, specimen


def test_each_section_has_a_template_and_each_template_a_section() -> None:
    templates = {file.name for file in (TEMPLATES / "sections").iterdir()}
    assert templates == {f"{section.name}.html.j2" for section in SECTIONS}
    for section in SECTIONS:
        environment().get_template(section.template)


def test_a_run_has_no_section_that_has_nothing_to_show(tmp_path: Path) -> None:
    report = specimen.report(tmp_path)
    without = report.model_copy(update={"consoles": (), "selftest": None, "link_order": None, "budgets": None})
    templates = {shown.template for shown in shown_sections(without, None)}
    for name in ("scaling", "why", "budget", "failed_boots", "selftest", "files"):
        assert f"sections/{name}.html.j2" not in templates


def test_a_file_has_no_section_of_a_run() -> None:
    templates = [shown.template for shown in shown_sections(foreign_specimen.summaries(), None)]
    assert templates == ["sections/files.html.j2"]


def test_failed_and_lost_boots_are_told_on_the_terminal_one_after_the_other(tmp_path: Path) -> None:
    report = specimen.report(tmp_path)
    failed, lost = report.boots[:2]
    boots = (
        failed.model_copy(update={"status": "failed", "reason": "panic"}),
        lost.model_copy(update={"status": "lost", "reason": "killed"}),
    )
    lines = [text for text, _ in section_lines(report.model_copy(update={"boots": boots}))]
    assert lines == [
        "",
        "failed boots:",
        f"  block {failed.block} {failed.variant}: panic",
        "",
        "lost boots:",
        f"  block {lost.block} {lost.variant}: killed",
    ]


def test_the_terminal_imports_nothing_that_only_a_page_needs() -> None:
    code = "import kdyno.report.terminal, sys; print({'plotly', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
