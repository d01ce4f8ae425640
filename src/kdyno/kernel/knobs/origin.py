"""source = "git:linux#v6.6" and config = "file:.config": what a variant is built from, where not what the others are.

They are the first things that a build looks up (see runs/prepare.py), and add nothing to it later.
"""

from __future__ import annotations

from pathlib import Path

from kdyno.base.names import absolute
from kdyno.kernel import source
from kdyno.kernel.knobs.base import Contribution, Knob, KnobContext


def contribute(value: str | None, context: KnobContext) -> Contribution:  # noqa: ARG001
    """Return an empty contribution: source and base configuration have places of their own in an image's key."""
    return Contribution()


def located_config(spec: str | None, base: Path) -> str | None:
    """Return the spec with its path, if it has one, made absolute; relative ones start from `base`. Raise
    NameUnfit.
    """
    if spec is None:
        return None
    if spec.startswith("file:"):
        return f"file:{absolute(spec.removeprefix('file:'), base)}"
    target, marker, _ = spec.partition("?")
    files = (f"{option}={absolute(path, base)}" for option, path in options_of(spec).items())
    return f"{target}{marker}{'&'.join(files)}"


def options_of(spec: str) -> dict[str, str]:
    """Return the options of a base configuration, which name files: make:TARGET?OPTION=PATH&OPTION=PATH."""
    options = (word.partition("=") for word in spec.partition("?")[2].split("&") if word)
    return {option: path for option, _, path in options}


SOURCE = Knob("source", contribute, in_matrix=True, located=source.located)
CONFIG = Knob("config", contribute, in_matrix=True, located=located_config)
