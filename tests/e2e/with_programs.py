"""kdyno, with more programs in /bin of its guests: python -m tests.e2e.with_programs PROGRAM... -- WORDS"""

from __future__ import annotations

import sys
from pathlib import Path

from kdyno.boot import initramfs, qemu
from kdyno.cli.main import main

if __name__ == "__main__":
    dashes = sys.argv.index("--")
    programs = [Path(program) for program in sys.argv[1:dashes]]
    more = [initramfs.file(f"bin/{program.name}", program.read_bytes()) for program in programs]
    tools = initramfs.guest_tools
    vars(qemu)["guest_tools"] = lambda: [*tools(), *more]
    raise SystemExit(main(sys.argv[dashes + 1 :]))
