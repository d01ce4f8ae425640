"""The state directory: where sources, builds, images, artefacts and the store live, and who may touch them now."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kdyno.errors import InfrastructureError


class NoSpace(InfrastructureError):
    message = "not enough disk space in {path}: {free_mb} MB free, {needed_mb} MB needed"
    hint = "free some space there, or name another place with --state DIR or KDYNO_STATE"


class DiskFull(InfrastructureError):
    message = "the disk that holds {path} is full"
    hint = "free some space and run the same command again: what was finished is kept"


class StateNotWritable(InfrastructureError):
    message = "can't write to the state directory {path}: {why}"
    hint = "name another place with --state DIR or KDYNO_STATE"


class HomeUnknown(InfrastructureError):
    message = "there is no place for the state directory: HOME is not set, and user {uid} has no entry in /etc/passwd"
    hint = "set HOME, or name a place with --state DIR or KDYNO_STATE"


class State:
    """The state directory and its parts; each part is made when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @classmethod
    def default(cls) -> State:
        """$KDYNO_STATE, else $XDG_STATE_HOME/kdyno, else ~/.local/state/kdyno. Raises HomeUnknown."""
        if explicit := os.environ.get("KDYNO_STATE"):
            return cls(Path(explicit))
        if base := os.environ.get("XDG_STATE_HOME"):
            return cls(Path(base) / "kdyno")
        try:
            return cls(Path.home() / ".local" / "state" / "kdyno")
        except RuntimeError as error:
            raise HomeUnknown(uid=os.getuid()) from error

    def _part(self, name: str) -> Path:
        path = self.root / name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateNotWritable(path=path, why=error.strerror) from error
        return path

    @property
    def sources(self) -> Path:
        """Kernel trees by identity; never written to after they are complete."""
        return self._part("sources")

    @property
    def patches(self) -> Path:
        """Patches that kdyno made itself, by content; may be deleted at any time."""
        return self._part("patches")

    @property
    def inputs(self) -> Path:
        """Files that builds take, such as profiles, by digest; may be deleted at any time."""
        return self._part("inputs")

    @property
    def digests(self) -> Path:
        """Digests of files that were hashed before, by their stat; may be deleted at any time."""
        return self._part("digests")

    @property
    def builds(self) -> Path:
        """Object directories of builds under way, and the logs of those that failed, by image key."""
        return self._part("builds")

    @property
    def images(self) -> Path:
        """Finished images, by key; a directory here is complete."""
        return self._part("images")

    @property
    def boots(self) -> Path:
        """Scratch directories of boots under way."""
        return self._part("boots")

    @property
    def pmu(self) -> Path:
        """PMU records of boots that no run asked for, by what decides them; may be deleted at any time."""
        return self._part("pmu")

    @property
    def artefacts(self) -> Path:
        """Consoles, streams and PMU records of finished boots, by hash of their content."""
        return self._part("artefacts")

    @property
    def locks(self) -> Path:
        return self._part("locks")

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self._part('.') / 'store.sqlite'}"

    def require_space(self, megabytes: int) -> None:
        """Raise NoSpace unless so many megabytes are free."""
        free = shutil.disk_usage(self._part(".")).free // 1_000_000
        if free < megabytes:
            raise NoSpace(path=self.root, free_mb=free, needed_mb=megabytes)

    @contextmanager
    def lock(self, name: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock `name` among all kdyno processes of this host; the kernel drops it if the holder dies."""
        path = self.locks / f"{name}.lock"
        try:
            file = path.open("wb")
        except OSError as error:
            raise StateNotWritable(path=path, why=error.strerror) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def disk_full_is_said(path: Path) -> Iterator[None]:
    """Turn ENOSPC and EDQUOT into DiskFull, which says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=path) from error
        raise


def nearest(path: Path) -> Path:
    """The path, or the nearest above it that is there, as far as this user can see."""
    return next(candidate for candidate in (path, *path.parents) if os.access(candidate, os.F_OK))


def why_not_writable(path: Path) -> str | None:
    """Open the file, or make and remove one in the directory or where it would be made; None if that works."""
    try:
        if path.is_file():
            path.open("ab").close()
        else:
            tempfile.NamedTemporaryFile(dir=nearest(path), prefix=".kdyno-").close()
    except OSError as error:
        return error.strerror
    return None
