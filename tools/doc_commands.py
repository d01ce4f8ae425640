"""The `kdyno` commands that the documents show: where they are, whether the parser accepts them, whether they work.

A command is on a line of a code block by itself, or between backticks. The parser checks all of them. Those in
CARRIED_OUT are carried out, in a directory that has a store with recorded boots and the files that the documents name.
The others are in NOT_CARRIED_OUT, with the reason. A command that is in neither is a problem.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn
from unittest.mock import patch

from markdown_it import MarkdownIt

from kdyno.cli.main import Parser, main, parse_words
from kdyno.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
MARKDOWN = MarkdownIt("commonmark").enable("table")
BEFORE = r"(?:sudo (?:-u \S+ |-H )*|taskset -c \S+ |git bisect run |[A-Z_]+=\S+ )*"
ON_A_LINE = re.compile(rf"\s*(?P<prompt>\$ )?{BEFORE}kdyno (?P<words>[a-z-].*)")
SOMEWHERE = re.compile(rf"(?:^|\s)kdyno (?:{'|'.join(VERBS)})(?!\S)")
SHELL = ("", "sh", "bash", "console")
"""The languages of code blocks whose lines are commands, and `text`, if the line begins with a prompt."""
IN_BACKTICKS = re.compile(rf"`{BEFORE}kdyno ([^`]+)`")
OPTIONAL = re.compile(r"\[[^]]*\]")
COMMENT = re.compile(r"\s+# .*")
PLACEHOLDER = re.compile(r"[A-Z]+")
LACKS = re.compile(
    r"the following arguments are required: (?:(?:-\w/)?(--\w+|-\w))?|expected (?:at least )?one argument"
)
MOST_ARGUMENTS = 5

CARRIED_OUT = (
    ("completion",),
    ("compare",),
    ("help",),
    ("history",),
    ("judge",),
    ("kernel", "lint"),
    ("kernel", "size"),
    ("plan", "mine.toml"),
    ("report",),
    ("run", "mine.toml"),
    ("runs",),
    ("scaling",),
    ("schema",),
    ("show",),
    ("store", "export"),
    ("store", "gc"),
    ("workload", "list"),
    ("workload", "show"),
)
"""What begins so is carried out. So are `march` without `patch`, `--help` and `--version`, and `ab`, which only prints
its experiment here.
"""
NOT_CARRIED_OUT = {
    ("bisect",): "it builds kernels",
    ("blockmap",): "it needs a file on a disk of this host, and the CI's file systems have none",
    ("boot",): "it boots a kernel",
    ("calibrate",): "it needs what `kdyno validate` measured",
    ("card",): "it needs a package of a judged kernel",
    ("confirm",): "it boots new seeds, which recorded boots lack",
    ("coverage",): "it needs a kernel and exact counts, which recorded boots lack",
    ("delegation",): "it needs a plan, and the compilers that the plan names",
    ("doctor",): "its output and its exit code depend on the host",
    ("explain",): "it needs exact counts, which recorded boots lack",
    ("fit-config",): "it boots kernels",
    ("fleet",): "it needs a PostgreSQL server; tests/cli/test_fleet.py has it",
    ("history", "--triage"): "it needs a change, and recorded boots have no kernels",
    ("init",): "it refuses to write over the file of the one before; tests/cli/test_command.py has it",
    ("kernel", "lint", "/bin/true", "--source"): "it needs a kernel source tree",
    ("kernel", "lint", "/bin/true", "--costs"): "it needs a record of the kernel",
    ("lab",): "it compiles routines of a kernel source tree, and times them on this host",
    ("march", "patch"): "it needs a kernel source tree",
    ("plan",): "it needs a kernel source tree; a test parses each file of experiments/",
    ("profile",): "it needs a PMU record, and the kernel that it is of",
    ("report", "latest", "--format", "kcidb"): "it needs the images of a run, and recorded boots have none",
    ("run",): "it builds and boots kernels; a test parses each file of experiments/",
    ("selftest",): "it boots a kernel hundreds of times",
    ("serve",): "it serves until a signal; tests/cli/test_serve.py has it",
    ("ship",): "it needs the images of a run, and recorded boots have none",
    ("soak",): "it boots a kernel for hours",
    ("store", "import"): "make_store carries it out, and a run is imported once",
    ("store", "rm"): "it removes the run that the other commands read",
    ("tune",): "it builds kernels",
    ("validate",): "it builds or runs kernels, and times them on this host",
    ("verify",): "it needs a package of a judged kernel",
    ("worker",): "it needs a fleet; tests/cli/test_fleet.py has it",
    ("workload", "try"): "it starts a server or a program of this host",
}
"""Why what begins so is only parsed. The longest beginning of a command counts, here and in CARRIED_OUT."""
STANDS_FOR = {
    "ab": {"BASE": "plain", "OTHER": "opt=O3"},
    "judge": {"FILE": "builds.json", "before=FILE": "before=before.json", "after=FILE": "after=after.json"},
    "help": {"TOPIC": "files"},
    "kernel": dict.fromkeys(("A", "B", "BEFORE", "AFTER", "IMAGE", "build/", "modules/", "vmlinux"), "/bin/true"),
    "march": {"FILE": "/proc/cpuinfo"},
    "plan": {"experiment.toml": "mine.toml"},
    "report": {"M": "0.01", "A": "0.05", "C": "holm", "V": "variant"},
    "run": {"experiment.toml": "mine.toml", "server.toml": "mine.toml"},
    "scaling": {"RUN": "FILE.csv"},
    "schema": {"NAME": "experiment"},
    "workload": {"FILE": "redis"},
    "": {"RUN": "latest", "BENCHMARK": "lat_pipe"},
}
"""By verb: a word that is there for the reader to fill in, and what this check fills in; `""` is for all verbs."""
ID = re.compile(r"[0-9a-f]{12}")
"""A run of another store, or for `kernel` an image."""
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


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


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


def unread_lines(document: Path) -> Iterator[str]:
    """Yield the lines of a shell's code blocks that have a command where this check doesn't find it."""
    name = document.relative_to(ROOT)
    for token in MARKDOWN.parse(document.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        lines = token.content.splitlines()
        has_prompts = any(line.lstrip().startswith("$ ") for line in lines)
        if not has_prompts and token.info.strip() not in SHELL:
            continue
        for number, line in enumerate(lines, token.map[0] + 1 + (token.type == "fence")):
            shell = COMMENT.sub("", line)
            if has_prompts != shell.lstrip().startswith("$ "):
                continue
            match = ON_A_LINE.match(shell)
            if SOMEWHERE.search(shell) and not (match and len(SOMEWHERE.findall(shell)) == 1):
                yield f"{name}:{number}: {line.strip()}: one command to a line, which begins with it"


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
    recorded = others["IMAGE"] if verb == "kernel" else "latest"
    return (verb, *(recorded if ID.fullmatch(word) else others.get(word, word) for word in rest))


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


def whole_words(command: Command) -> tuple[str, ...] | None:
    """Return the words with everything filled in, without what is optional; None if the command is not whole."""
    words = filled(words_of(OPTIONAL.sub("", command.text).partition("kdyno ")[2]))
    return words if refusal(words, True) is None else None


def to_carry_out(command: Command) -> tuple[str, ...] | None:
    """Return the words to carry out; None if the command is only parsed."""
    words = whole_words(command)
    if words is None:
        return None
    if words[0] == "ab":
        return (*(word for word in words if word != "--json"), "--toml")
    is_short = words[0].startswith("-") or (words[0] == "march" and "patch" not in words)
    return words if is_short or longest(words, CARRIED_OUT) > longest(words, NOT_CARRIED_OUT) else None


def is_without_reason(command: Command) -> bool:
    """Return whether a whole command is neither carried out nor in the table of those that aren't."""
    words = whole_words(command)
    return words is not None and to_carry_out(command) is None and not longest(words, NOT_CARRIED_OUT)


def longest(words: Sequence[str], starts: Iterable[tuple[str, ...]]) -> int:
    """Return the number of words of the longest start that the words begin with; 0 if there is none."""
    return max((len(start) for start in starts if tuple(words[: len(start)]) == start), default=0)


def missing_experiment(command: Command) -> str | None:
    """Return the file of experiments/ that a command names and that doesn't exist; None if there is no such file."""
    files = (word for word in command.words if word.startswith("experiments/") and not PLACEHOLDER.search(word))
    return next((file for file in files if not (ROOT / file).exists()), None)


def carried_out(words: Sequence[str]) -> str | None:
    """Return what a command prints if it fails; None if it doesn't."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        try:
            status = main(words)
        except SystemExit as left:
            status = int(left.code or 0)
    return f"exit {status}: {said.getvalue().strip()}" if status else None


def problems(pages: list[Path]) -> Iterator[str]:
    """Yield what is wrong with the commands of pages: the parser refuses them, they fail, they name a file that doesn't
    exist, or they are not carried out without a reason.
    """
    shown = [command for page in pages for command in commands(page)]
    for page in pages:
        yield from unread_lines(page)
    for command in shown:
        if (why := fault(command)) is not None:
            yield f"{command.where}: {command.text}: {why}"
        elif file := missing_experiment(command):
            yield f"{command.where}: {command.text}: {file} does not exist"
        elif is_without_reason(command):
            yield f"{command.where}: {command.text}: add it to CARRIED_OUT or NOT_CARRIED_OUT of tools/doc_commands.py"
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
