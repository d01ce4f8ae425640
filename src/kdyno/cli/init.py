"""`kdyno init`"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.terminal import line

NAME = "quickstart.toml"


class NotOverwritten(UserError):
    message = "{path} already exists, and was not changed"
    hint = "name another file: kdyno init FILE"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, default=Path(NAME), help=f"file to write (default: {NAME})")


def act(args: argparse.Namespace) -> int:
    from importlib.resources import files

    from kdyno.base.files import write_whole

    path: Path = args.file
    if path.exists() or path.is_symlink():
        raise NotOverwritten(path=path)
    write_whole(path, files("kdyno").joinpath("data", "experiments", NAME).read_text(encoding="utf-8"))
    word = shlex.quote(str(path))
    line(f"wrote {path}; edit it, or use it unchanged. Next:")
    width = len(f"kdyno plan {word}")
    for command, purpose in (
        ("kdyno doctor", "check that everything is installed"),
        (f"kdyno plan {word}", "show what it would build and boot, and how long that should take"),
        (f"kdyno run {word}", "run it, and print the verdicts"),
    ):
        line(f"  {command:<{width}}  # {purpose}")
    return 0
