"""cflags = ["-fno-plt", "--param=max-inline-insns-auto=20"]: words for the compiler that no other knob has.

They go last into KCFLAGS, so that they overrule the kernel's own. The kernel's makefiles give them to every C file;
boot, real mode and purgatory code has flags of its own. With lto, ld.lld makes the machine code: it gets the words for
LLVM's code generation as well, `-mllvm=-NAME=VALUE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.kernel import lkd
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext
from kdyno.kernel.toolchain import Toolchain

SANE = re.compile(r"-[A-Za-z0-9_=+.,:%-]+")
"""Characters that make and a shell pass on unchanged. No slash: the content of a file would not be part of the image's
key.
"""
TAKEN = (
    (re.compile(r"-O.*"), "set `opt`"),
    (re.compile(r"-m(arch|cpu)=.*"), "set `march`"),
    (re.compile(r"-mtune=.*"), "set `mtune`"),
    (re.compile(r"-f(no-)?lto.*"), "set `lto`"),
    (re.compile(r"-g.*"), "set `lines`"),
    (re.compile(r"-f(auto-|cs-)?profile.*|-fbranch-probabilities.*|-fbasic-block-sections.*"), "set `profile`"),
    (re.compile(r"-f(test-)?coverage.*"), "set `profile`"),
)
"""Words that have a knob of their own: it does more than the word, or knows when it isn't possible."""
KINDS = re.compile(r"-[fmWDU].+|--param=.+")
"""Choices of code, warnings and macros. Other words name files, other outputs or other steps than compiling."""
OTHER_STEPS = re.compile(r"-fplugin.*|-fdump.*|-fopt-info.*|-fsave-.*|-fsanitize-.*list=.*|-W[alp],.*")


LLVM_WORD = "-mllvm="
"""Begins words that clang passes to LLVM, as one word."""


class WordUnfit(UserError):
    message = 'cflags: "{word}" cannot be passed to every compilation: {why}'
    hint = "give -f..., -m..., -W..., -D..., -U... or --param=NAME=VALUE, each one word, without a slash"


class KnobExists(UserError):
    message = 'cflags: "{word}" has a knob of its own'
    hint = "{instead} instead"


class WordRefused(UserError):
    message = 'cflags: {name} {version} refuses "{word}": {complaint}'
    hint = "run `{name} --help=optimizers` (gcc), or see its manual, for the words that it knows"


def check(value: Iterable[str], host: Host) -> None:
    """Raise WordUnfit, KnobExists or WordRefused unless the compiler takes each word, and kdyno may give it."""
    for word in value:
        check_word(word)
        _ask(word, host.toolchain)


def contribute(value: tuple[str, ...], context: KnobContext) -> Contribution:
    llvm_words = [f"-{word}" for word in value if word.startswith(LLVM_WORD)]
    at_link = lkd.lto_words(context.toolchain, "cflags", " ".join(llvm_words)) if llvm_words else {}
    if not at_link:
        return Contribution(kcflags=value)
    lkd.find_lkd()
    return Contribution(
        kcflags=value,
        make=lkd.words(context.arch),
        environment={lkd.LINKER: context.linker, **at_link},
    )


def check_word(word: str) -> None:
    """Raise an error unless it is a word that chooses code for every C file alike. Pure."""
    if not SANE.fullmatch(word):
        raise WordUnfit(word=word, why="it has a character that make or a shell would read, or names a file")
    for pattern, instead in TAKEN:
        if pattern.fullmatch(word):
            raise KnobExists(word=word, instead=instead)
    if OTHER_STEPS.fullmatch(word) or not KINDS.fullmatch(word):
        raise WordUnfit(word=word, why="it names a file, another output or another step")


def _ask(word: str, toolchain: Toolchain) -> None:
    command = [toolchain.command, "-m64", "-Werror", word, "-S", "-o", "/dev/null", "-x", "c", "/dev/null"]
    done = process.attempt(command, env={"LC_ALL": "C"})
    if done.returncode != 0:
        complaint = done.stderr.strip().partition("\n")[0].removeprefix("cc1: ").removeprefix("error: ")
        identity = toolchain.identity
        raise WordRefused(word=word, name=identity.name, version=identity.version, complaint=complaint)


KNOB = Knob("cflags", contribute, check)
