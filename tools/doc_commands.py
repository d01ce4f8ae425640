"""The `kdyno` commands that the documents show: where they stand, whether the parser takes them, what comes of them.

A command stands on a line of a code block by itself, or between backticks. Those that only read are carried out, in a
directory that has a store with recorded boots and the files that the documents name.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn
from unittest.mock import patch

from markdown_it import MarkdownIt

from kdyno.cli.main import Parser, main, parse_words

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
MARKDOWN = MarkdownIt("commonmark").enable("table")
BEFORE = r"(?:sudo (?:-u \S+ |-H )*|taskset -c \S+ |git bisect run )*"
ON_A_LINE = re.compile(rf"\s*(?P<prompt>\$ )?{BEFORE}kdyno (?P<words>[a-z-].*)")
IN_BACKTICKS = re.compile(rf"`{BEFORE}kdyno ([^`]+)`")
OPTIONAL = re.compile(r"\[[^]]*\]")
COMMENT = re.compile(r"\s+# .*")
PLACEHOLDER = re.compile(r"[A-Z]+")
LACKS = re.compile(
    r"the following arguments are required: (?:(?:-\w/)?(--\w+|-\w))?|expected (?:at least )?one argument"
)
MOST_ARGUMENTS = 5

READ_ONLY = (
    *(
        ("runs",),
        ("report",),
        ("show",),
        ("compare",),
        ("judge",),
        ("scaling",),
        ("schema",),
        ("completion",),
        ("help",),
    ),
    *(("workload", "list"), ("workload", "show"), ("store", "gc"), ("store", "export")),
)
"""What begins so needs neither a kernel nor long, and recorded boots will do. So does `march` without `patch`."""
STANDS_FOR = {
    "judge": {"FILE": "builds.json", "before=FILE": "before=before.json", "after=FILE": "after=after.json"},
    "help": {"TOPIC": "files"},
    "march": {"FILE": "/proc/cpuinfo"},
    "report": {"M": "0.01", "A": "0.05", "C": "holm", "V": "variant"},
    "scaling": {"RUN": "FILE.csv"},
    "schema": {"NAME": "experiment"},
    "workload": {"FILE": "redis"},
    "": {"RUN": "latest", "BENCHMARK": "lat_pipe"},
}
"""By verb: a word that is there for the reader to fill in, and what this check fills in; `""` is for all verbs."""
RUN_ID = re.compile(r"[0-9a-f]{12}")
"""Another store's run."""
FILES = {
    "builds.json": "foreign/hyperfine-one.json",
    "before.json": "foreign/hyperfine-before.json",
    "after.json": "foreign/hyperfine-after.json",
    "compiler_patch.csv": "foreign/compiler_patch.csv",
    "compiler_patch_claims.csv": "foreign/compiler_patch_claims.csv",
    "FILE.csv": "scaling/sieve.csv",
}
"""The files that documented commands read, and what lies under their names here."""
TEXTS = {
    "VALUES.csv": "kernel,boot,time_us\na,1,10.1\na,2,9.9\na,3,10\nb,1,11.1\nb,2,10.9\nb,3,11\n",
    "MEANS.csv": "kernel,mean,sd,n\na,10,0.1,3\nb,11,0.1,3\n",
    "STATISTICS.csv": "pair,Q,p\na vs b,17.32,0.0003\n",
}
EXPERIMENT = """\
name = "replay"
source = "a-tree"
baseline = "baseline"
blocks = 3
[machine]
type = "fake"
recording = "recording"
[variants.baseline]
[variants.variant]
"""


@dataclass(frozen=True)
class Command:
    """One that a document shows."""

    where: str
    text: str
    words: tuple[str, ...]
    is_whole: bool
    """A line of a code block, to be typed as it is; between backticks a verb may be named without its arguments."""


class Refused(Exception):
    """What the parser says."""


def commands(document: Path) -> Iterator[Command]:
    name = document.relative_to(ROOT)
    for token in MARKDOWN.parse(document.read_text(encoding="utf-8")):
        first = token.map[0] + 1 if token.map else 0
        lines = token.content.splitlines()
        is_block = token.type in ("fence", "code_block")
        has_prompts = is_block and any(line.lstrip().startswith("$ ") for line in lines)
        for number, line in enumerate(lines, first + (token.type == "fence")):
            where = f"{name}:{number}"
            match = ON_A_LINE.match(line) if is_block else None
            if match and bool(match["prompt"]) == has_prompts:
                yield Command(where, match[0].strip(), words_of(match["words"]), True)
            elif is_block or token.type == "inline":
                for text in IN_BACKTICKS.findall(line):
                    yield Command(where, f"kdyno {text}", words_of(text), False)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words up to a comment, or to where a shell would split them; without the brackets of a synopsis."""
    lexer = shlex.shlex(COMMENT.sub("", text), posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if word[0] in "|<>;&":
            break
        words.append(word.removeprefix("[").removesuffix("]"))
    return tuple(word for word in words if word not in ("", "..."))


def filled(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command with what its reader fills in."""
    verb, *rest = words
    others = {**STANDS_FOR[""], **STANDS_FOR.get(verb, {})}
    return (verb, *("latest" if RUN_ID.fullmatch(word) else others.get(word, word) for word in rest))


def fault(command: Command) -> str | None:
    """Return why the parser refuses a command; None if it accepts it."""
    words = filled(command.words)
    why = refusal(words, command.is_whole)
    others = tuple("1" if PLACEHOLDER.fullmatch(word) else word for word in words)
    return why and refusal(others, command.is_whole) and why


@cache
def refusal(words: tuple[str, ...], is_whole: bool) -> str | None:
    """Return the parser's objection to the words, or to those and more where they aren't the whole command."""
    for number in range(MOST_ARGUMENTS):
        try:
            with patch.object(Parser, "error", refuse), redirect_stdout(io.StringIO()):
                parse_words(list(words))
        except SystemExit:  # --help
            return None
        except Refused as refused:
            if number and any(f"{what} '1'" in str(refused) for what in ("invalid choice:", "unknown action")):
                return None
            lacks = LACKS.search(str(refused))
            if is_whole or not lacks:
                return str(refused)
            words = (*words, *filter(None, lacks.groups()), "1")
        else:
            return None
    return f"more than {MOST_ARGUMENTS} arguments are lacking"


def refuse(_: Parser, message: str) -> NoReturn:
    raise Refused(message)


def to_carry_out(command: Command) -> tuple[str, ...] | None:
    """Return the words with everything filled in; None if the command doesn't only read, or is not whole."""
    words = filled(words_of(OPTIONAL.sub("", command.text).partition("kdyno ")[2]))
    is_march = words[0] == "march" and "patch" not in words
    is_read_only = is_march or any(words[: len(start)] == start for start in READ_ONLY)
    return words if is_read_only and refusal(words, True) is None else None


def carried_out(words: Sequence[str]) -> str | None:
    """Return what a command prints if it fails; None if it doesn't."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        try:
            status = main(words)
        except SystemExit as left:
            status = int(left.code or 0)
    return f"exit {status}: {said.getvalue().strip()}" if status else None


def problems(documents: list[Path]) -> Iterator[str]:
    """Return the commands of the documents that the parser refuses, and those that only read and fail."""
    shown = [command for document in documents for command in commands(document)]
    for command in shown:
        if (why := fault(command)) is not None:
            yield f"{command.where}: {command.text}: {why}"
    with (
        TemporaryDirectory() as name,
        chdir(name),
        patch.dict(os.environ, {"KDYNO_STATE": f"{name}/state", "COLUMNS": "110"}),
    ):
        os.environ.pop("KDYNO_STORE", None)
        make_store()
        to_do = {words: command.where for command in shown if (words := to_carry_out(command))}
        for words, where in to_do.items():
            if (why := carried_out(words)) is not None:
                yield f"{where}: kdyno {shlex.join(words)}: {why}"


def make_store() -> None:
    """Make a run of recorded boots, and the files that commands name, in the present directory."""
    for variant in ("baseline", "variant"):
        shutil.copytree(DATA / "recording" / "baseline", Path("recording") / variant)
    Path("mine.toml").write_text(EXPERIMENT)
    for name, place in FILES.items():
        shutil.copyfile(DATA / place, name)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    made = (
        ["run", "mine.toml", "--quiet"],
        ["store", "export", "latest", "theirs.kdyno"],
        ["store", "import", "theirs.kdyno", "--store", "sqlite:///theirs.sqlite"],
    )
    for words in made:
        if why := carried_out(words):
            raise AssertionError(f"kdyno {shlex.join(words)}: {why}")
