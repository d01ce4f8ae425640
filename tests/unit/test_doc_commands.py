"""What `make check` does with the commands in the documents (tools/doc_commands.py)."""

from __future__ import annotations

from pathlib import Path

import doc_commands
import pytest


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(doc_commands, "ROOT", tmp_path)
    return tmp_path / "page.md"


def commands(shown: Path, text: str) -> list[doc_commands.Command]:
    shown.write_text(text)
    return list(doc_commands.commands(shown))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kdyno runs", "runs"),
        ("sudo -u kdyno -H kdyno run experiment.toml", "run experiment.toml"),
        ("taskset -c 0 kdyno run x.toml", "run x.toml"),
        ("git bisect run kdyno ab .#GOOD .#HEAD -t lat_pipe", "ab .#GOOD .#HEAD -t lat_pipe"),
        ("kdyno report latest --csv > values.csv", "report latest --csv"),
        ("kdyno store gc      # what isn't needed", "store gc"),
        ("kdyno judge FILE [FILE ...]", "judge FILE FILE"),
    ],
)
def test_a_line_of_a_code_block_is_a_command_up_to_what_a_shell_makes_of_the_rest(
    shown: Path, line: str, words: str
) -> None:
    [command] = commands(shown, f"So:\n\n    {line}\n")
    assert (command.where, command.words, command.is_whole) == ("page.md:3", tuple(words.split()), True)


def test_what_a_command_prints_is_no_command(shown: Path) -> None:
    text = "```text\n$ kdyno doctor\nkdyno can build here\nhint: `kdyno runs` lists them\n```\n"
    assert [command.words for command in commands(shown, text)] == [("doctor",), ("runs",)]


@pytest.mark.parametrize(
    "text",
    [
        "    kdyno run x.toml --no-such-option\n",
        "    kdyno report\n",
        "`kdyno launch RUN`\n",
        "`kdyno store burn`\n",
        "`kdyno report --no-such-option`\n",
        "`kdyno soak IMAGE --hours soon`\n",
    ],
)
def test_a_command_that_the_parser_refuses_is_found(shown: Path, text: str) -> None:
    [command] = commands(shown, text)
    assert doc_commands.fault(command)


@pytest.mark.parametrize(
    "text", ["`kdyno profile`\n", "`kdyno report`\n", "`kdyno soak IMAGE --hours H`\n", "`kdyno profile export`\n"]
)
def test_between_backticks_a_verb_may_be_named_without_its_arguments(shown: Path, text: str) -> None:
    [command] = commands(shown, text)
    assert doc_commands.fault(command) is None


def test_what_measures_builds_or_removes_is_not_carried_out(shown: Path) -> None:
    text = "    kdyno run x.toml\n    kdyno store rm RUN\n    kdyno march patch --tree t -o p\n    kdyno report RUN\n"
    assert [doc_commands.to_carry_out(command) for command in commands(shown, text)] == [
        *(None, None, None),
        ("report", "latest"),
    ]


def test_a_command_that_fails_on_recorded_boots_is_found(shown: Path) -> None:
    shown.write_text("    kdyno report RUN --analysis no_such_benchmark\n    kdyno show RUN\n")
    [problem] = doc_commands.problems([shown])
    assert problem.startswith("page.md:1: kdyno report latest --analysis no_such_benchmark: exit 1: kdyno: ")
