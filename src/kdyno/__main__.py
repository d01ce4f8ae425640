"""`python -m kdyno` and the `kdyno` command."""

from __future__ import annotations

import os
import sys

LIBRARIES = ("site-packages", "dist-packages")


def _is_here(path: str) -> bool:
    """Return whether a directory that Python searches is the one where kdyno was called, and holds no libraries of
    Python's.

    `python -m`, and an empty entry of PYTHONPATH, put that first: a file there called `signal.py` would run.
    """
    if path.endswith(LIBRARIES):
        return False
    return path in ("", ".") or (os.path.isdir(path) and os.path.samefile(path, "."))  # noqa: PTH112, PTH121


sys.path[:] = [path for path in sys.path if not _is_here(path)]

from kdyno.cli.main import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main())
