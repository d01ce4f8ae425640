"""The functions that compilers called hot or cold, by the list of their sections that lkd leaves with a vmlinux.

gcc and clang put a function that a profile or an attribute calls hot into `.text.hot.NAME`, a cold one, or the cold
part of one, into `.text.unlikely.NAME` or `.text.split.NAME`. vmlinux has lost these names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault

FILE = "sections.jsonl"
"""The list's name in an image."""
MOST_BYTES = 100_000_000
HOT = ".text.hot."
"""Begins the names of sections with hot code; the others are cold."""


class SectionsUnreadable(InfrastructureError):
    message = "can't read the list of hot and cold functions {path}: {why}"
    hint = "remove the image's directory and build it again"


class GroupedSection(Frozen):
    """A section with the code of one function, or with its cold part."""

    section: Annotated[str, Field(pattern=r"^\.text\.(hot|unlikely|split)\.[A-Za-z0-9_.$]{1,4096}$")]
    object: Annotated[str, Field(min_length=1, max_length=4096)]
    """The path in the link: relative to the object directory; vmlinux.o if all objects were made one before."""
    bytes: Annotated[int, Field(ge=1, lt=2**63)]

    @property
    def is_hot(self) -> bool:
        return self.section.startswith(HOT)

    @property
    def function(self) -> str:
        """Return the function that the section is named for."""
        return self.section.split(".", 3)[3]


def read_sections(path: Path) -> tuple[GroupedSection, ...]:
    """Return the sections in a list, in the order of the link. Raise SectionsUnreadable."""
    try:
        return tuple(GroupedSection.model_validate_json(line) for line in read_whole(path, MOST_BYTES).splitlines())
    except OSError as error:
        raise SectionsUnreadable(path=path, why=error.strerror) from error
    except ValidationError as error:
        raise SectionsUnreadable(path=path, why=first_fault(error)) from error
