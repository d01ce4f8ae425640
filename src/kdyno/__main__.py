"""`python -m kdyno` and the `kdyno` command."""

from __future__ import annotations

from kdyno.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
