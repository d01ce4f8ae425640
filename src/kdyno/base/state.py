"""The state directory: the place of sources, builds, images, artefacts and the store, and the locks on it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kdyno.base.errors import InfrastructureError
from kdyno.base.ownership import is_root, untrusted_reason
from kdyno.base.state_marker import IN_USE, LOCKS, STORE, claim


class NoSpace(InfrastructureError):
    message = "not enough disk space in {path}: {free_mb} MB free, {needed_mb} MB needed"
    hint = "free some space there (`kdyno store gc`), or name another place with --state DIR or KDYNO_STATE"


class DiskFull(InfrastructureError):
    message = "the disk that holds {path} is full"
    hint = "free some space and run the same command again: what was finished is kept"


class StateNotWritable(InfrastructureError):
    message = "can't write to the state directory {path}: {why}"
    hint = "name another place with --state DIR or KDYNO_STATE"


class StateNotOurs(InfrastructureError):
    message = "as root, kdyno does not use the state directory {path}: {why}"
    hint = "run it as the owner of that directory, or give --state DIR with a directory that only root can change"


class LockRefused(InfrastructureError):
    message = "can't take the lock {path}: {why}"
    hint = "kdyno did not make this file: look at it, and remove it"


class HomeUnknown(InfrastructureError):
    message = "there is no place for the state directory: HOME is not set, and user {uid} has no entry in /etc/passwd"
    hint = "set HOME, or name a place with --state DIR or KDYNO_STATE"


class State:
    """The state directory and its parts; each part is made on first use.

    A directory that holds anything which isn't kdyno's is refused with StateOfOthers. Root uses none that others may
    change: each way to a part leads through `refusal_reason`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._is_claimed = False

    @classmethod
    def default(cls) -> State:
        """Return the default: $KDYNO_STATE, else $XDG_STATE_HOME/kdyno, else ~/.local/state/kdyno. Raise
        HomeUnknown.
        """
        if explicit := os.environ.get("KDYNO_STATE"):
            return cls(Path(explicit))
        if base := os.environ.get("XDG_STATE_HOME"):
            return cls(Path(base) / "kdyno")
        try:
            return cls(Path.home() / ".local" / "state" / "kdyno")
        except RuntimeError as error:
            raise HomeUnknown(uid=os.getuid()) from error

    def refusal_reason(self, name: str = ".") -> str | None:
        """Return why root must not use a part, as somebody else may change it or a directory above; None if root may.

        Other users are stopped by the system from everything that they may not do, and can't be misused.
        """
        return untrusted_reason(self.root / name) if is_root() else None

    def file(self, name: str) -> Path:
        """Return the path of a file that lies in the state directory itself. Raise StateNotOurs."""
        if why := self.refusal_reason(name):
            raise StateNotOurs(path=self.root, why=why)
        return self.root / name

    def _part(self, name: str) -> Path:
        path = self.file(name)
        try:
            if not self._is_claimed:
                _make_directory(self.root)
                self.file(".")  # in a directory for all, such as /tmp, somebody else may have made it just before
                claim(self.root)
                self._is_claimed = True
            is_new = not path.is_dir()
            if is_new:
                _make_directory(path)
        except OSError as error:
            raise StateNotWritable(path=path, why=error.strerror) from error
        if is_new:
            self.file(name)
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
    def kernels(self) -> Path:
        """Kernels from packages, with a few modules; may be deleted at any time."""
        return self._part("kernels")

    @property
    def roots(self) -> Path:
        """Root file systems of guests, by the packages in them; may be deleted at any time."""
        return self._part("roots")

    @property
    def soaks(self) -> Path:
        """Records of soaks, and their consoles."""
        return self._part("soaks")

    @property
    def bisects(self) -> Path:
        """Records of bisections, which continue from there."""
        return self._part("bisects")

    @property
    def searches(self) -> Path:
        """Records of searches in spaces of recipes, which continue from there."""
        return self._part("searches")

    @property
    def artefacts(self) -> Path:
        """Consoles, streams and PMU records of finished boots, by hash of their content."""
        return self._part("artefacts")

    @property
    def removed(self) -> Path:
        """Files that are being removed: each was moved here in one step; may be deleted at any time."""
        return self._part("removed")

    @property
    def locks(self) -> Path:
        return self._part(LOCKS)

    @property
    def store_file(self) -> Path:
        """The store, if no other one is named."""
        self._part(".")
        return self.file(STORE)

    def require_space(self, megabytes: int) -> None:
        """Raise NoSpace unless so many megabytes are free."""
        require_space(self._part("."), megabytes * MEGABYTE)

    @contextmanager
    def lock(self, name: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock `name` among all kdyno processes of this host; the kernel drops it if the holder dies."""
        with self.hold_shared():
            descriptor = _open_lock(self.locks / f"{name}.lock")
            try:
                if not _try_lock(descriptor):
                    on_wait()
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    @contextmanager
    def lock_if_free(self, name: str) -> Iterator[bool]:
        """Hold the lock `name` if nobody else does; yield whether it is held now."""
        descriptor = _open_lock(self.locks / f"{name}.lock")
        try:
            yield _try_lock(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def hold_shared(self) -> Iterator[None]:
        """Hold a shared lock: nothing is removed from the directory while it is held. It may have any number of
        holders.
        """
        descriptor = _open_lock(self.locks / IN_USE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def hold_alone(self) -> Iterator[bool]:
        """Yield whether no other kdyno is at work here; if so, no other begins before the end. The caller must hold no
        other lock.
        """
        descriptor = _open_lock(self.locks / IN_USE)
        try:
            yield _try_lock(descriptor) and not self.held_names()
        finally:
            os.close(descriptor)

    def held_names(self) -> list[str]:
        """Return the locks and scratch directories that are held now, by name; finding out creates nothing."""
        locks, boots = self.file(LOCKS), self.file("boots")
        names = [path.stem for path in sorted(locks.glob("*.lock")) if path.name != IN_USE and _is_held(path)]
        return names + [f"boots/{path.name}" for path in sorted(boots.glob(f"*{SCRATCH}")) if _is_held(path)]

    @contextmanager
    def scratch(self, prefix: str) -> Iterator[Path]:
        """Yield an empty directory for the files of boots under way; it is gone at the end.

        Its owner holds a lock of the directory itself, which ends with the owner: the directory of a killed kdyno is
        removed by the next call.
        """
        boots = self._part("boots")
        with self.hold_shared():
            with self.lock("scratch"), translate_disk_full(boots):  # between making one and locking it nobody looks
                _remove_unheld(boots)
                place = Path(tempfile.mkdtemp(prefix=f"{prefix}-", suffix=SCRATCH, dir=boots))
                descriptor = os.open(place, DIRECTORY)
                _try_lock(descriptor)
            try:
                yield place
            finally:
                shutil.rmtree(place, ignore_errors=True)
                os.close(descriptor)


ROOT_RECORD = "root.json"
"""The file in the directory of a root file system that describes its content."""
SCRATCH = ".boot"
"""The end of the names of scratch directories: nothing else is ever removed from their place."""
MEGABYTE = 1_000_000
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _make_directory(path: Path) -> None:
    """Make a directory, and those above it. Root's can't be changed by others, whatever the umask is."""
    for place in (*reversed(path.parents), path):
        if not place.is_dir():
            place.mkdir(mode=0o755 if is_root() else 0o777, exist_ok=True)


def _open_lock(path: Path) -> int:
    """Open the file of a lock, which is made if it doesn't exist and never changed. No other file is opened in its
    place.

    Raise StateNotWritable and LockRefused.
    """
    # With a pipe that nobody reads, open() itself would wait.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LockRefused(path=path, why="it is a symbolic link") from error
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise LockRefused(path=path, why="it is not a regular file") from error
        raise StateNotWritable(path=path, why=error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LockRefused(path=path, why="it is not a regular file")
    return descriptor


def _try_lock(descriptor: int) -> bool:
    """Lock an open file or directory; return False if another holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held(path: Path) -> bool:
    """Return whether another process has locked a file or directory. A file that can't be opened is held by nobody."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _remove_unheld(directory: Path) -> None:
    """Remove the scratch directories of a directory that have no owner. No link is followed."""
    if directory.is_symlink():
        return
    for leftover in directory.glob(f"*{SCRATCH}"):
        with suppress(OSError):  # not a directory, or another user's
            descriptor = os.open(leftover, DIRECTORY)
            try:
                if _try_lock(descriptor):
                    shutil.rmtree(leftover, ignore_errors=True)
            finally:
                os.close(descriptor)


def require_space(directory: Path, size: int) -> None:
    """Raise NoSpace unless so many bytes are free on a directory's disk: before minutes of work that would fill it."""
    free = shutil.disk_usage(directory).free
    if free < size:
        raise NoSpace(path=directory, free_mb=free // MEGABYTE, needed_mb=-(-size // MEGABYTE))


@contextmanager
def translate_disk_full(path: Path) -> Iterator[None]:
    """Turn ENOSPC and EDQUOT into DiskFull, whose hint says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=path) from error
        raise


def nearest_existing(path: Path) -> Path:
    """Return the path, or its nearest parent that exists, as far as this user can see."""
    return next(candidate for candidate in (path, *path.parents) if os.access(candidate, os.F_OK))


def unwritable_reason(path: Path) -> str | None:
    """Return why the file can't be opened, or none made and removed in the directory or where it would be; None if it
    can.
    """
    try:
        if path.is_file():
            path.open("ab").close()
        else:
            tempfile.NamedTemporaryFile(dir=nearest_existing(path), prefix=".kdyno-").close()
    except OSError as error:
        return error.strerror
    return None
