"""Boot a kernel once and ask it what it is: python examples/boot.py KERNEL."""

from __future__ import annotations

import sys

from kdyno import Machine


def main(kernel: str) -> None:
    machine = Machine(lane="wall", memory_mb=512)
    result = machine.boot(kernel, ["cat", "/proc/version"], append=["loglevel=7"])
    print(result.stdout.decode(errors="replace").strip())
    print(len(result.console.splitlines()), "lines on the console")


if __name__ == "__main__":
    main(*sys.argv[1:])
