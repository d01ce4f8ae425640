"""cmdline = ["mitigations=off"]: words for the kernel command line. They start an image; they don't change it."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext


class CmdlineWordUnfit(UserError):
    message = "`{word}` can't be a word of the kernel command line: {why}"
    hint = 'write one list entry for each word: cmdline = ["mitigations=off", "quiet"]'


def check(value: Sequence[str], host: Host) -> None:  # noqa: ARG001
    """Raise an error unless each entry is one word; a quoted value may hold spaces, as the kernel's own parser has
    it.
    """
    for word in value:
        if not word or not word.isprintable():
            raise CmdlineWordUnfit(word=word, why="it is empty or not printable")
        if " " in "".join(word.split('"')[::2]):
            raise CmdlineWordUnfit(word=word, why="there is a space in it outside of quotes")


def contribute(value: Sequence[str], context: KnobContext) -> Contribution:  # noqa: ARG001
    return Contribution()


KNOB = Knob("cmdline", contribute, check)
