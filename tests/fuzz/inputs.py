"""What the inputs of several readers are made of, and what holds of whatever is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from kdyno.base.text import UNSHOWN

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
SOURCE = HERE.parents[1] / "src" / "kdyno"
EXPERIMENTS = HERE.parents[1] / "experiments"
TOML = (
    b"[variants.a]\n",
    b"matrix = { opt = ['O2', 'O3'] }\n",
    b"extends = 'a'\n",
    b"blocks = 10000\n",
    b"kconfig = { A = true }\n",
)


def files(*paths: Path) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for path in paths]


def is_shown_as_it_is(text: str) -> bool:
    """Return whether nothing in a text steers a terminal; line ends may be there."""
    return all(character == "\n" or unicodedata.category(character) not in UNSHOWN for character in text)
