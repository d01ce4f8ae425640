"""Who may write: a file with a token for each person."""

from __future__ import annotations

import hmac
import stat
from collections.abc import Mapping
from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.report.served.errors import TokensUnfit

FEWEST_CHARACTERS = 20
"""Of a token: one that is guessed over a network must be long."""
MOST_BYTES = 1_000_000


def read_tokens(path: Path) -> dict[str, str]:
    """Return the name of each token's owner. Raise TokensUnfit."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise TokensUnfit(path=path, why="others may read it")
        text = read_whole(path, MOST_BYTES).decode()
    except OSError as error:
        raise TokensUnfit(path=path, why=error.strerror or str(error)) from error
    except UnicodeDecodeError:
        raise TokensUnfit(path=path, why="it is not UTF-8") from None
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 2 or not words[1].isascii():
            raise TokensUnfit(path=path, why=f"line {number} is not NAME TOKEN")
        name, token = words
        if len(token) < FEWEST_CHARACTERS:
            raise TokensUnfit(
                path=path, why=f"the token in line {number} has fewer than {FEWEST_CHARACTERS} characters"
            )
        if token in names:
            raise TokensUnfit(path=path, why=f"line {number} has the token of another line")
        names[token] = name
    if not names:
        raise TokensUnfit(path=path, why="it has no token")
    return names


def author_of(token: str, names: Mapping[str, str]) -> str | None:
    """Return whose token it is; None if it is nobody's. The time that it takes doesn't depend on the token."""
    given = token.encode()
    owners = [name for known, name in names.items() if hmac.compare_digest(known.encode(), given)]
    return owners[0] if owners else None
