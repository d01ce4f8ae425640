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


def test_an_ab_prints_its_experiment_and_builds_nothing(shown: Path) -> None:
    [command] = commands(shown, "    kdyno ab plain opt=O3 --json\n")
    assert doc_commands.to_carry_out(command) == ("ab", "plain", "opt=O3", "--toml")


def test_a_stale_option_of_a_command_is_a_problem(shown: Path) -> None:
    shown.write_text("    kdyno soak IMAGE --hours 1 --former-option\n")
    [problem] = doc_commands.problems([shown])
    assert problem == ("page.md:1: kdyno soak IMAGE --hours 1 --former-option: unrecognized arguments: --former-option")


def test_a_command_that_is_not_carried_out_needs_a_reason(shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown.write_text("    kdyno soak IMAGE --hours 1\n")
    assert list(doc_commands.problems([shown])) == []
    monkeypatch.setattr(doc_commands, "NOT_CARRIED_OUT", {})
    [problem] = doc_commands.problems([shown])
    assert problem.startswith("page.md:1: kdyno soak IMAGE --hours 1: add it to CARRIED_OUT or NOT_CARRIED_OUT")


def test_a_command_whose_experiment_does_not_exist_is_a_problem(shown: Path) -> None:
    shown.write_text("    kdyno run experiments/former.toml\n")
    [problem] = doc_commands.problems([shown])
    assert problem == "page.md:1: kdyno run experiments/former.toml: experiments/former.toml does not exist"


@pytest.mark.parametrize(
    "line",
    [
        "time kdyno run x.toml",
        "kdyno runs && kdyno store gc",
        "for image in a b; do kdyno boot $image; done",
        "$ nice kdyno runs",
    ],
)
def test_a_command_that_this_check_would_not_find_is_a_problem(shown: Path, line: str) -> None:
    shown.write_text(f"```sh\n{line}\n```\n")
    [problem] = doc_commands.unread_lines(shown)
    assert problem == f"page.md:2: {line}: one command to a line, which begins with it"


def test_output_and_comments_may_name_commands(shown: Path) -> None:
    shown.write_text(
        "    $ kdyno runs   # kdyno show has more\n    why: kdyno explain a b c\n\n```toml\n# or kdyno run\n```\n"
    )
    assert list(doc_commands.unread_lines(shown)) == []


def test_each_row_of_the_table_of_reasons_is_of_a_documented_command() -> None:
    shown = [command for document in doc_commands.documents() for command in doc_commands.commands(document)]
    words = [found for command in shown if (found := doc_commands.whole_words(command))]
    assert [start for start in doc_commands.NOT_CARRIED_OUT if not any(w[: len(start)] == start for w in words)] == []


def test_a_command_that_fails_on_recorded_boots_is_found(shown: Path) -> None:
    shown.write_text("    kdyno report RUN --analysis no_such_benchmark\n    kdyno show RUN\n")
    [problem] = doc_commands.problems([shown])
    assert problem.startswith("page.md:1: kdyno report latest --analysis no_such_benchmark: exit 1: kdyno: ")
