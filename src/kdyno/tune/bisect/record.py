"""The record of a bisection in the state directory: what each trial has shown. Its boots and runs are in the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State
from kdyno.base.text import format_list
from kdyno.store.store import Store
from kdyno.tune.bisect.bench import Trialled
from kdyno.tune.bisect.evidence import BisectEvidence, Check, Differences, Measure, Revert, SameCode, Trial, Untestable
from kdyno.tune.bisect.ranges import KernelRange

MOST_BYTES = 64 << 20
MOVED_SHOWN = 3
MOST_BLOCKS = 1_000_000
Place = Annotated[int, Field(ge=0, lt=2**31)]


class RangeMoved(UserError):
    message = "{named} has changed since this bisection began: {changes}"
    hint = (
        "name the commits themselves to continue with them; or add --again to begin anew with what the names mean now"
    )


class RecordDamaged(InfrastructureError):
    message = "can't read the record of this bisection, {path}: {why}"
    hint = "remove the file, or add --again: boots that are in the store are not repeated"


class BisectEvent(Frozen):
    """The outcome of one trial."""

    kind: Literal["measure", "check", "revert"]
    before: Place
    """The state that is compared with: 0 for a measurement, the bad end for a revert."""
    state: Place
    """The state that was measured; for a revert the step that was left out."""
    blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS)]
    run: str | None
    """The run in the store; null if there were no boots."""
    values: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    """ln(state / before) by block, positive if the state is worse; empty if it can't be tested."""
    places: tuple[Place, ...] = ()
    """The block of each value."""
    layouts: Place = 0
    reason: str = ""
    """Why the state can't be tested; empty if it can."""
    same: Place | None = None
    """The state with the same code."""
    code: str | None = None
    """A digest of the kernel's code and data."""

    @property
    def trial(self) -> Trial:
        if self.kind == "check":
            return Check(self.before, self.state, self.blocks, self.layouts)
        if self.kind == "revert":
            return Revert(self.state, self.blocks, self.layouts)
        return Measure(self.state, self.blocks, self.layouts)

    @property
    def outcome(self) -> Differences | Untestable | SameCode:
        if self.same is not None:
            return SameCode(self.same)
        return (
            Differences(self.values, self.layouts, self.blocks, self.places) if self.values else Untestable(self.reason)
        )


class BisectRecord(Frozen):
    """Everything that a bisection has found so far."""

    v: Literal[1] = 1
    id: str
    named: str
    resolved: dict[str, str]
    started: datetime
    events: tuple[BisectEvent, ...] = ()


class RecordFile:
    """The record of one bisection on disk; each change is whole and durable before the next trial."""

    def __init__(self, bisection: str, kernels: KernelRange, state: State) -> None:
        self.path = state.bisects / f"{bisection}.json"
        self.steps = kernels.steps
        self.record = BisectRecord(
            id=bisection, named=kernels.named, resolved=kernels.resolved, started=datetime.now(UTC)
        )

    def resume(self, store: Store) -> None:
        """Read the record of an earlier command, without trials whose runs are no longer in the store.

        Raises RangeMoved and RecordDamaged.
        """
        try:
            earlier = BisectRecord.model_validate_json(read_whole(self.path, MOST_BYTES))
        except FileNotFoundError:
            return
        except OSError as error:
            raise RecordDamaged(path=self.path, why=error.strerror) from error
        except ValidationError as error:
            raise RecordDamaged(path=self.path, why=first_fault(error)) from None
        for event in earlier.events:
            if problem := self._problem(event):
                raise RecordDamaged(path=self.path, why=problem)
        if earlier.resolved != self.record.resolved:
            raise RangeMoved(named=self.record.named, changes=self._changes(earlier.resolved))
        kept = tuple(event for event in earlier.events if event.run is None or store.has_run(event.run))
        self.record = earlier.model_copy(update={"events": kept})

    def _problem(self, event: BisectEvent) -> str:
        """Return why an event can't be of this range; empty if it can."""
        if not (event.before <= self.steps and 1 <= event.state <= self.steps and (event.same or 0) <= self.steps):
            return f"a trial names a kernel that is not one of {self.steps}"
        if len(event.places) != len(event.values):
            return "a trial has another number of blocks than of values"
        if event.kind == "check" and event.before >= event.state:
            return f"a check compares kernel {event.state} with kernel {event.before}"
        return ""

    def _changes(self, earlier: dict[str, str]) -> str:
        now = self.record.resolved
        changes = [
            f"{name} was {earlier.get(name, 'absent')[:12]} and is {now.get(name, 'absent')[:12]}"
            for name in sorted({*earlier, *now})
            if earlier.get(name) != now.get(name)
        ]
        return format_list(changes, MOVED_SHOWN) or "the order is another one"

    def add(self, trial: Trial, trialled: Trialled) -> None:
        """Add the outcome of a trial, and write the record. Raises what writing raises."""
        outcome = trialled.outcome
        kind, before, state = _place(trial, self.steps)
        event = BisectEvent(
            kind=kind,
            before=before,
            state=state,
            blocks=trial.blocks,
            run=trialled.run,
            values=outcome.values if isinstance(outcome, Differences) else (),
            places=outcome.places if isinstance(outcome, Differences) else (),
            layouts=outcome.layouts if isinstance(outcome, Differences) else 0,
            reason=outcome.reason if isinstance(outcome, Untestable) else "",
            same=outcome.state if isinstance(outcome, SameCode) else None,
            code=trialled.code,
        )
        self.record = self.record.model_copy(update={"events": (*self.record.events, event)})
        write_whole(self.path, self.record.model_dump_json(indent=1) + "\n")

    def evidence(self) -> BisectEvidence:
        """Return the evidence of all trials on record."""
        evidence = BisectEvidence(self.steps)
        for event in self.record.events:
            evidence.learn(event.trial, event.outcome)
        return evidence

    def codes(self) -> dict[int, str]:
        """Return the digests of the code of the states that were built."""
        return {event.state: event.code for event in self.record.events if event.code and event.kind == "measure"}


def _place(trial: Trial, last: int) -> tuple[Literal["measure", "check", "revert"], int, int]:
    """Return the kind of a trial, the state that it compares with, and the state or step that it is about."""
    match trial:
        case Check(before, after):
            return "check", before, after
        case Revert(step):
            return "revert", last, step
        case Measure(state):
            return "measure", 0, state
