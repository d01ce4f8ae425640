"""page_size = "64k": which pages anonymous memory gets, by words for the kernel command line; see docs/local.md.

Linux 6.8 and newer have huge pages of several sizes (multi-size THP), and 6.12 takes them on its command line.
"""

from __future__ import annotations

import re

from kdyno.errors import UserError
from kdyno.kernel.knobs.base import Ask, Context, Contribution, Knob
from kdyno.kernel.recipe import page_size_words

OLDEST = (6, 12)
"""That takes thp_anon= on its command line."""


class NoSuchSizes(UserError):
    message = 'page_size = "{value}" needs Linux 6.12 or newer, and {source} is {version}'
    hint = 'older kernels have "4k", "2M", "always" and "madvise"'


def contribute(value: str | None, context: Context) -> Contribution:
    """The same image for all sizes: only the command line differs."""
    if value is None:
        return Contribution()
    words = page_size_words(value)
    about = context.source.identity
    version = about.version
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if any(word.startswith("thp_anon=") for word in words) and numbers < OLDEST:
        raise NoSuchSizes(value=value, source=about.spec, version=version)
    ask = Ask(symbol="TRANSPARENT_HUGEPAGE", value="y", by=f'page_size = "{value}"')
    return Contribution(asks=(ask,), cmdline=words)


KNOB = Knob("page_size", contribute, in_matrix=True)
