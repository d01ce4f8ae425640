"""page_size = "64k": which pages anonymous memory gets, by words for the kernel command line; see docs/local.md.

Linux 6.8 and newer have huge pages of several sizes (multi-size THP), and 6.12 takes them on its command line. A kernel
with our own patch page-block maps as many pages at a fault as make up the size; see docs/page-block.md.
"""

from __future__ import annotations

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext
from kdyno.kernel.own_patches import release_of
from kdyno.kernel.recipe import PAGE_SIZES, page_size_words

OLDEST = (6, 12)
"""The first version that accepts thp_anon= on its command line."""
WORDS = ("always", "madvise")


class UnknownSize(UserError):
    message = 'page_size can\'t be "{value}": there are {sizes}, "always" and "madvise"'
    hint = "give a power of two; huge pages begin with four pages, and end with the 2M of one page table"


class NoSuchSizes(UserError):
    message = 'page_size = "{value}" needs Linux 6.12 or newer, and {source} is {version}'
    hint = 'older kernels have "4k", "2M", "always" and "madvise"; Linux 6.1 has more with patches = ["page-block"]'


def check(value: str | None, host: Host) -> None:  # noqa: ARG001
    """Raise UnknownSize."""
    if value not in (None, *PAGE_SIZES, *WORDS):
        raise UnknownSize(value=value, sizes=", ".join(f'"{size}"' for size in PAGE_SIZES))


def contribute(value: str | None, context: KnobContext) -> Contribution:
    """Return the contribution; the image is the same for all sizes: only the command line differs."""
    if value is None:
        return Contribution()
    words = page_size_words(value, context.patches)
    about = context.source.identity
    if any(word.startswith("thp_anon=") for word in words) and release_of(about.version) < OLDEST:
        raise NoSuchSizes(value=value, source=about.spec, version=about.version)
    request = KconfigRequest(symbol="TRANSPARENT_HUGEPAGE", value="y", by=f'page_size = "{value}"')
    return Contribution(asks=(request,))


KNOB = Knob("page_size", contribute, check, in_matrix=True)
