"""Setting knobs and bringing them back. What can't be set is reported and left; the rest is set.

`write` is the one thing that touches the host, and comes as an argument: tests put a kernel that refuses in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.boot.host.journal import (
    RUNNING,
    SETTING,
    Journal,
    Keeper,
    boot_id,
    journal_lock,
    journal_path,
    read_journal,
    running_state,
    write_journal,
)
from kdyno.boot.host.knobs import KNOBS, HostKnob, KnobFile, Setting, knob_files, owner_of

ROOT = Path("/")

Write = Callable[[Path, str], None]
"""Writes a value to a knob's file; raises OSError if the kernel refuses."""


class UnknownKnob(UserError):
    message = "{name} is no knob that can be set"
    hint = "knobs: {known}"


class KnobRefused(InfrastructureError):
    message = "can't set /{path} to {value}: {why}"
    hint = "nothing is changed; only root may (sudo), and the kernel takes no other values than it knows"


class NotRestored(InfrastructureError):
    message = "can't set /{path} back to {value}: {why}"
    hint = "`kdyno doctor --host --restore` tries again"


class Turn(Frozen):
    """The result for one file."""

    knob: str
    path: str
    """Below the root."""
    before: str
    wanted: str
    outcome: Literal["set", "restored", "refused"]
    why: str = ""
    """What the kernel said, if it refused."""


class Turned(Frozen):
    """The result of a command."""

    turns: tuple[Turn, ...] = ()
    void: bool = False
    """A journal from before the host's last start was removed: the kernel had forgotten those values, too."""
    absent: tuple[str, ...] = ()
    """Knobs that were asked for by name and that this host doesn't have."""

    @property
    def refused(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if turn.outcome == "refused")


def write_value(path: Path, value: str) -> None:
    """One write, as the kernel expects it; nothing is created, and no link followed."""
    number = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.write(number, f"{value}\n".encode())
    finally:
        os.close(number)


def chosen(names: Sequence[str]) -> tuple[HostKnob, ...]:
    """The knobs that are meant; without names those that may be set unasked. Raises UnknownKnob."""
    by_name = {knob.name: knob for knob in KNOBS}
    for name in names:
        if name not in by_name:
            raise UnknownKnob(name=name, known=", ".join(by_name))
    return tuple(knob for knob in KNOBS if (knob.name in names if names else knob.unasked))


def set_knobs(state: State, names: Sequence[str] = (), *, root: Path = ROOT, write: Write = write_value) -> Turned:
    """Set knobs to what they should be for measuring; the old values are on the disk first.

    Raises UnknownKnob and JournalDamaged, StateNotWritable and DiskFull; then nothing was set.
    """
    wanted = chosen(names)
    with journal_lock(state):
        journal, void = _journal_of_this_boot(state, root)
        by_knob = {knob.name: knob_files(root, knob) for knob in wanted}
        to_set = [file for present in by_knob.values() for file in present if not file.good]
        known = journal.values
        fresh = {_name(root, file.path): file.value for file in to_set if _name(root, file.path) not in known}
        if fresh:
            write_journal(state, journal.model_copy(update={"values": known | fresh}))
        turns = tuple(_set(root, file, write) for file in to_set)
        if unmoved := {path for path, value in fresh.items() if _stands(root, path, value)}:
            left = {path: value for path, value in (known | fresh).items() if path not in unmoved}
            write_journal(state, journal.model_copy(update={"values": left}))
    absent = tuple(name for name, present in by_knob.items() if not present and names)
    return Turned(turns=turns, void=void, absent=absent)


def restore(state: State, keeper: Keeper = SETTING, *, root: Path = ROOT, write: Write = write_value) -> Turned:
    """Bring every knob back to what it was before the first `set_knobs`; what is refused stays in the journal.

    Raises JournalDamaged.
    """
    with journal_lock(state, keeper):
        return _restore_all(state, keeper, root, write)


def restore_all(state: State) -> Turned:
    """The same for what `kdyno doctor --host --set` set, and for what a run on the machine `local` left that was
    killed.
    """
    rounds = restore(running_state(), RUNNING) if journal_path(running_state(), RUNNING).exists() else Turned()
    by_hand = restore(state)
    return Turned(turns=(*rounds.turns, *by_hand.turns), void=rounds.void or by_hand.void)


@contextmanager
def turned(
    state: State,
    values: Mapping[str, str],
    *,
    root: Path = ROOT,
    write: Write = write_value,
) -> Iterator[None]:
    """Set these files, by path below the root, while the body runs; then they are as they were.

    What a kdyno left that was killed meanwhile is brought back first. One such body runs at a time. Raises KnobRefused,
    JournalDamaged, StateNotWritable and DiskFull; then nothing is changed.
    """
    with journal_lock(state, RUNNING):
        _require_restored(_restore_all(state, RUNNING, root, write))
        before = {path: _owned(path).value(root / path) for path in values}
        for path, value in before.items():
            if value is None:
                raise KnobRefused(path=path, value=values[path], why="what it says now is no value to come back to")
        if before:
            write_journal(state, Journal(boot_id=boot_id(root), values=before), RUNNING)
        try:
            for path, value in values.items():
                setting = _owned(path)
                standing = setting.value(root / path)
                if standing is not None and setting.same(standing, value):
                    continue
                if why := _refusal(setting, root / path, value, write):
                    raise KnobRefused(path=path, value=value, why=why)
            yield
        finally:
            left = _restore_all(state, RUNNING, root, write)
        _require_restored(left)


def _owned(path: str) -> Setting:
    owner = owner_of(path, RUNNING.knobs)
    assert owner is not None, f"{path} is no file that a run may set"
    return owner[1]


def _require_restored(done: Turned) -> None:
    for turn in done.refused:
        raise NotRestored(path=turn.path, value=turn.wanted, why=turn.why)


def _restore_all(state: State, keeper: Keeper, root: Path, write: Write) -> Turned:
    """What the journal has, with its lock held.

    Some files wait for others: the policies of CPUs that SMT took away, or the energy preference, which stands still
    while the governor is `performance`. So what fails is tried again as long as anything moves.
    """
    journal, void = _journal_of_this_boot(state, root, keeper)
    left, restored = dict(journal.values), dict[str, Turn]()
    refused: dict[str, Turn] = {}
    moved = True
    while left and moved:
        turns = {path: _restore(root, path, value, keeper, write) for path, value in left.items()}
        refused = {path: turn for path, turn in turns.items() if turn.outcome == "refused"}
        restored |= {path: turn for path, turn in turns.items() if path not in refused}
        moved = len(refused) < len(left)
        left = {path: left[path] for path in refused}
    if journal.values:
        write_journal(state, journal.model_copy(update={"values": left}), keeper)
    return Turned(turns=(*restored.values(), *refused.values()), void=void)


def _journal_of_this_boot(state: State, root: Path, keeper: Keeper = SETTING) -> tuple[Journal, bool]:
    """The journal, empty if there is none, and whether one was void and is removed."""
    now = boot_id(root)
    journal = read_journal(state, keeper)
    if journal is not None and journal.boot_id == now:
        return journal, False
    if journal is not None:
        write_journal(state, Journal(boot_id=now), keeper)
    return Journal(boot_id=now), journal is not None


def _set(root: Path, file: KnobFile, write: Write) -> Turn:
    assert file.wanted is not None
    why = _refusal(file.setting, file.path, file.wanted, write)
    return Turn(
        knob=file.knob.name,
        path=_name(root, file.path),
        before=file.value,
        wanted=file.wanted,
        outcome="refused" if why else "set",
        why=why,
    )


def _restore(root: Path, name: str, value: str, keeper: Keeper, write: Write) -> Turn:
    owner = owner_of(name, keeper.knobs)
    assert owner is not None  # read_journal has looked
    knob, setting = owner
    before = setting.value(root / name)
    why = ""
    if before is None:
        why = "it isn't there"
    elif not setting.same(before, value):
        why = _refusal(setting, root / name, value, write)
    return Turn(
        knob=knob.name,
        path=name,
        before=before or "",
        wanted=value,
        outcome="refused" if why else "restored",
        why=why,
    )


def _stands(root: Path, name: str, value: str) -> bool:
    """Whether a file still says what it said before."""
    owner = owner_of(name)
    assert owner is not None
    return owner[1].value(root / name) == value


def _refusal(setting: Setting, path: Path, value: str, write: Write) -> str:
    """Write, and look whether it stands there; return why not, empty if it does."""
    try:
        write(path, value)
    except OSError as error:
        return error.strerror or str(error)
    now = setting.value(path)
    return "" if now is not None and setting.same(now, value) else f"it took the value, and says {now}"


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
