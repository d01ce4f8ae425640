"""Inputs: named files that a build takes from elsewhere, such as a profile or an order of functions.

Words of make and values of the environment name an input by its placeholder, `@order@`. Where the file lies is put in
right before make runs, and is in no key.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.state import State

DIRECTORY = "inputs"
"""The directory of inputs, next to the object directory, where commands run: so `../inputs/NAME` is the path in all
commands of all builds.
"""
MOST_BYTES = 256_000_000
"""Bytes of a user's own file."""
DIGEST_DIGITS = 16
"""In a file's name. ccache doesn't hash the content of a file that it doesn't know an option for, but does hash the
option: a file of other content must have another name."""


class InputUnreadable(UserError):
    message = "can't read {path}, which the recipe names as its {name}: {why}"
    hint = "check the path: those in an experiment are relative to its file"


class InputMissing(InfrastructureError):
    message = "the file {path} is missing, from which the {name} of this build comes"
    hint = "run the same command again: missing files are made anew"


class Input(Frozen):
    """One named file that a build takes."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """No two inputs of a recipe share it: the name of the knob that brings it."""
    digest: str
    """SHA-256 of the content, or of everything that decides the content if that is still to be made."""
    path: Path
    """Its path in the state directory, or its future one. In no key."""

    @property
    def placeholder(self) -> str:
        return f"@{self.name}@"

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.digest[:DIGEST_DIGITS]}"


def kept_at(digest: str, state: State) -> Path:
    """Return the path of the input of this digest in the state directory, once it is made."""
    return state.inputs / digest


def read_input(name: str, path: Path, state: State) -> Input:
    """Return a user's own file as an input. It is copied, so that a build takes the planned file. Raise
    InputUnreadable.
    """
    try:
        content = read_whole(path, MOST_BYTES)
    except OSError as error:
        raise InputUnreadable(path=path, name=name, why=error.strerror) from error
    digest = hashlib.sha256(content).hexdigest()
    kept = kept_at(digest, state)
    if not kept.exists():
        write_whole(kept, content)
    return Input(name=name, digest=digest, path=kept)


def digests(inputs: Iterable[Input]) -> dict[str, str]:
    """Return digests by name, for a key."""
    return {file.name: file.digest for file in inputs}


def place(inputs: Iterable[Input], build: Path) -> None:
    """Copy the files of a build into its directory, unless they are there. Raise InputMissing."""
    for file in inputs:
        copy = placed(file, build)
        if not copy.exists():
            copy.parent.mkdir(exist_ok=True)
            try:
                shutil.copyfile(file.path, copy)
            except FileNotFoundError as error:
                raise InputMissing(path=file.path, name=file.name) from error


def placed(file: Input, build: Path) -> Path:
    """Return the path of the file in a build directory."""
    return build / DIRECTORY / file.file_name


def with_paths(text: str, inputs: Iterable[Input]) -> str:
    """Return the text with the path of each input, from the object directory, for its placeholder."""
    for file in inputs:
        text = text.replace(file.placeholder, f"../{DIRECTORY}/{file.file_name}")
    return text
