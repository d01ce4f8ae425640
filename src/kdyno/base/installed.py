"""Finding a program that kdyno needs, either its own or one of the host."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

from kdyno.base.errors import InfrastructureError

BUILT_WITH_KDYNO = "`pip install .` in a kdyno checkout builds and installs it"


class ProgramMissing(InfrastructureError):
    message = "{needed_for} needs {program}, which is not installed ({looked_in})"
    hint = "{way_out}"


def find_program(program: str, needed_for: str, way_out: str = BUILT_WITH_KDYNO) -> Path:
    """Return the program next to kdyno's own command, else the one on the PATH. Raise ProgramMissing."""
    scripts = Path(sysconfig.get_path("scripts"))
    beside = scripts / program
    path = str(beside) if beside.is_file() else shutil.which(program)
    if path is None:
        looked_in = f"neither in {scripts} nor on the PATH"
        raise ProgramMissing(needed_for=needed_for, program=program, looked_in=looked_in, way_out=way_out)
    return Path(path)
