"""The space of a search: its knobs, their choices, and the points that conditions and forbidden combinations leave.

A point has the index of a choice for each knob. Choice 0 is the baseline's, so that the baseline is the point of zeros.
Pure.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kdyno.base.errors import UserError
from kdyno.kernel.recipe import RUNTIME
from kdyno.runs.experiment.space import ChoiceValue, Risk

Point = tuple[int, ...]
Value = ChoiceValue | None
"""The value of a choice; None leaves the knob alone."""
MOST_LISTED = 50_000
"""The largest product of all choices whose points are listed one by one; of a larger space points are drawn."""
DRAWS = 4000
"""The points that are drawn from a larger space at a time."""
RELINKED = ("layout_seed", "order")
"""Keys of the recipe that change the link alone."""
ALONE = "-"
"""What a choice that leaves the knob alone is called."""


class CircularConditions(UserError):
    message = "[space.knobs] has conditions that depend on each other in a circle: {circle}"
    hint = "remove `when` from one of them"


class NeverTried(UserError):
    message = "[space.knobs] {key} = {value} can never be tried: conditions and forbidden combinations exclude it"
    hint = "change `when` of the knob or [[space.forbid]], or remove the choice"


class BaselineForbidden(UserError):
    message = "[[space.forbid]] forbids the baseline: {combination}"
    hint = "remove this combination, or choose another baseline"


class NothingToTry(UserError):
    message = "the space has no recipe beside the baseline{reason}"
    hint = "add choices{advice}"


@dataclass(frozen=True)
class SpaceKnob:
    """One knob of a space."""

    key: str
    choices: tuple[Value, ...]
    """The values; the first is the baseline's."""
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """By another knob, the choices of which it must have one."""
    risks: tuple[Risk, ...] = ()
    """The risk of each choice; empty: none has any."""

    @property
    def field(self) -> str:
        """Return the field of the recipe."""
        return self.key.partition(".")[0]

    @property
    def is_runtime(self) -> bool:
        """Return whether it only affects the start of an image."""
        return self.field in RUNTIME

    @property
    def is_relinked(self) -> bool:
        return self.field in RELINKED

    def title(self, choice: int) -> str:
        """Return a choice in words: `opt=O3`."""
        return f"{self.key}={describe(self.choices[choice])}"


def describe(value: Value) -> str:
    """Return a value as it is written in a short form."""
    if isinstance(value, bool):
        return "y" if value else "n"
    return ALONE if value is None or value == "" else str(value)


@dataclass(frozen=True)
class Space:
    """All points that may be tried."""

    knobs: tuple[SpaceKnob, ...]
    forbid: tuple[Mapping[str, tuple[Value, ...]], ...] = ()
    left_out: tuple[str, ...] = ()
    """Choices that were left out for their risk, in words."""

    @property
    def baseline(self) -> Point:
        return (0,) * len(self.knobs)

    @property
    def product(self) -> int:
        """The number of all combinations, with those that conditions and forbidden combinations exclude."""
        return math.prod(len(knob.choices) for knob in self.knobs)

    @property
    def is_listed(self) -> bool:
        """Return whether the points are listed one by one."""
        return self.product <= MOST_LISTED

    @cached_property
    def _place_by_key(self) -> dict[str, int]:
        return {knob.key: place for place, knob in enumerate(self.knobs)}

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The places of the knobs, each after those that its condition names. Raises CircularConditions."""
        order: list[int] = []
        path: list[int] = []

        def visit(place: int) -> None:
            if place in order:
                return
            if place in path:
                circle = [self.knobs[step].key for step in (*path[path.index(place) :], place)]
                raise CircularConditions(circle=" -> ".join(circle))
            path.append(place)
            for key in self.knobs[place].when:
                visit(self._place_by_key[key])
            path.pop()
            order.append(place)

        for place in range(len(self.knobs)):
            visit(place)
        return tuple(order)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All points, the baseline first; of a space that is not listed, some that are drawn."""
        if not self.is_listed:
            return self.draw(random.Random(0), DRAWS)
        combinations = itertools.product(*(range(len(knob.choices)) for knob in self.knobs))
        return tuple(dict.fromkeys(point for point in map(self.canonical, combinations) if self.is_allowed(point)))

    def draw(self, rng: random.Random, count: int) -> tuple[Point, ...]:
        """Return distinct points drawn at random, at most `count`, the baseline first."""
        drawn = dict.fromkeys([self.baseline])
        for _ in range(4 * count):
            point = self.canonical([rng.randrange(len(knob.choices)) for knob in self.knobs])
            if self.is_allowed(point):
                drawn[point] = None
            if len(drawn) >= count:
                break
        return tuple(drawn)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Yield the points with another choice of one knob."""
        for place, knob in enumerate(self.knobs):
            for choice in range(len(knob.choices)):
                other = self.canonical([*point[:place], choice, *point[place + 1 :]])
                if other != point and self.is_allowed(other):
                    yield other

    def canonical(self, point: Sequence[int]) -> Point:
        """Return the point with the baseline's choice of each knob whose condition doesn't hold."""
        settled = list(point)
        for place in self._order:
            knob = self.knobs[place]
            if knob.when and not self._holds(knob.when, settled):
                settled[place] = 0
        return tuple(settled)

    def is_allowed(self, point: Point) -> bool:
        return not any(self._holds(combination, point) for combination in self.forbid)

    def _holds(self, condition: Mapping[str, tuple[Value, ...]], point: Sequence[int]) -> bool:
        return all(
            _is_among(self.knobs[place].choices[point[place]], values)
            for place, values in ((self._place_by_key[key], values) for key, values in condition.items())
        )

    def title(self, point: Point) -> str:
        """Return what differs from the baseline, in words."""
        changes = [knob.title(choice) for knob, choice in zip(self.knobs, point, strict=True) if choice]
        return ", ".join(changes) or "the baseline"

    def values(self, point: Point) -> dict[str, Value]:
        """Return the values of the knobs that differ from the baseline, by key."""
        return {knob.key: knob.choices[choice] for knob, choice in zip(self.knobs, point, strict=True) if choice}

    def point_of(self, values: Mapping[str, Value]) -> Point | None:
        """Return the point of these values; None if a knob or a choice is not of this space."""
        if set(values) - set(self._place_by_key):
            return None
        point = list(self.baseline)
        for key, value in values.items():
            place = self._place_by_key[key]
            choices = [index for index, choice in enumerate(self.knobs[place].choices) if _is_same(choice, value)]
            if not choices:
                return None
            point[place] = choices[0]
        return tuple(point)

    def image_of(self, point: Point) -> Point:
        """Return the part of a point that decides the image."""
        return tuple(0 if knob.is_runtime else choice for knob, choice in zip(self.knobs, point, strict=True))

    def objects_of(self, point: Point) -> Point:
        """Return the part of a point that decides what is compiled."""
        return tuple(
            0 if knob.is_runtime or knob.is_relinked else choice for knob, choice in zip(self.knobs, point, strict=True)
        )

    def risks(self, point: Point) -> list[str]:
        """Return the choices of a point that trade something, with what they trade."""
        chosen = ((knob, choice) for knob, choice in zip(self.knobs, point, strict=True) if choice and knob.risks)
        return [
            f"{knob.title(choice)} ({knob.risks[choice]})" for knob, choice in chosen if knob.risks[choice] != "none"
        ]

    def check(self) -> None:
        """Raise CircularConditions, BaselineForbidden, NothingToTry and NeverTried."""
        for combination in self.forbid:
            if self._holds(combination, self.baseline):
                words = ", ".join(f"{key}={'|'.join(map(describe, values))}" for key, values in combination.items())
                raise BaselineForbidden(combination=words)
        if len(self.points) < 2:
            reason = f": left out for their risk: {', '.join(self.left_out)}" if self.left_out else ""
            advice = ", or name the risk in `allow` of [search]" if self.left_out else ""
            raise NothingToTry(reason=reason, advice=advice)
        tried = [{point[place] for point in self.points} for place in range(len(self.knobs))]
        for place, knob in enumerate(self.knobs):
            for choice in range(1, len(knob.choices)):
                if choice not in tried[place] and not self._can_have(place, choice):
                    raise NeverTried(key=knob.key, value=describe(knob.choices[choice]))

    def _can_have(self, place: int, choice: int) -> bool:
        """Return whether a drawn point has a choice, with its conditions met as far as they ask for other knobs."""
        if self.is_listed:
            return False
        rng = random.Random(f"{place} {choice}")
        for _ in range(DRAWS):
            point = [rng.randrange(len(knob.choices)) for knob in self.knobs]
            self._meet(place, point, rng)
            point[place] = choice
            settled = self.canonical(point)
            if settled[place] == choice and self.is_allowed(settled):
                return True
        return False

    def _meet(self, place: int, point: list[int], rng: random.Random) -> None:
        for key, values in self.knobs[place].when.items():
            other = self._place_by_key[key]
            self._meet(other, point, rng)
            choices = [c for c, value in enumerate(self.knobs[other].choices) if _is_among(value, values)]
            point[other] = rng.choice(choices)


def _is_same(first: Value, second: Value) -> bool:
    """Return whether two values are the same; true is y, as in Kconfig."""
    return describe(first) == describe(second)


def _is_among(value: Value, values: Sequence[Value]) -> bool:
    return any(_is_same(value, other) for other in values)
