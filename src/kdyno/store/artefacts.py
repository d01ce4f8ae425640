"""Artefacts: files of boots (consoles, agent streams, PMU records), kept by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from kdyno.base.errors import InfrastructureError
from kdyno.base.files import sync
from kdyno.base.state import translate_disk_full

SHA256 = re.compile(r"[0-9a-f]{64}")


class ArtefactMissing(InfrastructureError):
    message = "artefact {sha256} is not in {directory}"
    hint = (
        "if the run was made with another state directory, name that one with --state DIR; otherwise the artefact was "
        "removed"
    )


class ArtefactDamaged(InfrastructureError):
    message = "artefact {path} is damaged: its content has the SHA-256 {actual}"
    hint = "remove the file, or restore it from a copy; samples are in the store, not in artefacts"


class Artefacts:
    """A directory of immutable files, two levels deep: `ab/ab12...`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, path: Path) -> str:
        """Keep a copy of a file and return its SHA-256. Equal content is kept once. Raise DiskFull."""
        with translate_disk_full(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.directory, prefix=".incoming-")
            incoming = Path(name)
            try:
                with path.open("rb") as source, os.fdopen(handle, "wb") as target:
                    shutil.copyfileobj(source, target)
                    target.flush()
                    os.fsync(target.fileno())
                sha256 = _sha256(incoming)
                self._keep(incoming, sha256)
            finally:
                incoming.unlink(missing_ok=True)
        return sha256

    def get(self, sha256: str) -> Path:
        """Return the file with this content. Raise ArtefactMissing, or ArtefactDamaged if it has another content."""
        path = self._place(sha256)
        if not SHA256.fullmatch(sha256) or path.is_symlink() or not path.is_file():
            raise ArtefactMissing(sha256=sha256, directory=self.directory)
        if (actual := _sha256(path)) != sha256:
            raise ArtefactDamaged(path=path, actual=actual)
        return path

    def _keep(self, incoming: Path, sha256: str) -> None:
        place = self._place(sha256)
        if place.is_file() and _sha256(place) == sha256:
            return
        place.parent.mkdir(exist_ok=True)
        incoming.chmod(0o444)
        incoming.replace(place)
        sync(place.parent)

    def _place(self, sha256: str) -> Path:
        return self.directory / sha256[:2] / sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
