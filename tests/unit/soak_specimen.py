"""What a guest says in a soak of two loads, as its agent would: a stream, record by record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from kdyno.measure.guest.job import Program, Soak
from kdyno.measure.guest.soak import MemoryLook
from kdyno.measure.guest.stream import Asked

LOADS = ("good", "other")
SOAK = Soak(seconds=3600, every=10)
ASKED = Asked("wall", 1, programs=tuple(Program(name=name, command=("true",)) for name in LOADS), soak=SOAK)
HELLO = {"type": "hello", "agent": "0", "kernel": "6.12.117", "lane": "wall", "cpus": 2, "init": True}
SECOND = 1_000_000_000


def memory(seconds: float, *, at_rest: bool = False, tainted: int = 0, **kb: int) -> dict[str, Any]:
    sizes = {"MemFree": 900_000, "SUnreclaim": 8000, "KernelStack": 900, **kb}
    looked = {"elapsed": int(seconds * SECOND), "at_rest": at_rest, "kb": sizes}
    return {"type": "memory", **looked, "tasks": 60, "files": 100, "tainted": tainted}


def tally(program: str, rounds: int, *, failures: int = 0, progress: str = "running") -> dict[str, Any]:
    times = {"elapsed": rounds * SECOND, "longest": SECOND if rounds else 0}
    return {"type": "tally", "program": program, "rounds": rounds, "failures": failures, **times, "progress": progress}


def failed(program: str = "good", *, status: int = 1, output: bytes = b"no\n", **more: Any) -> dict[str, Any]:
    details = {"phase": "command", "round": 3, "status": status, "elapsed": SECOND, "hex": output.hex()}
    return {"type": "failed", "program": program, **details, **more}


def stream(*records: dict[str, Any], whole: bool = True) -> bytes:
    """Hello, these records, and the end unless the stream was cut off."""
    lines = [HELLO, *records]
    if whole:
        lines.append({"type": "end", "records": len(lines)})
    return "".join(json.dumps({"v": 1, **record}) + "\n" for record in lines).encode()


def sound(loads: Iterable[str] = LOADS, *, seconds: int = 3600, tainted: int = 0) -> list[dict[str, Any]]:
    """A soak in which all is well: three looks, and every load over."""
    names = list(loads)
    return [
        memory(0, at_rest=True),
        memory(seconds / 2),
        *(tally(name, 5) for name in names),
        *(tally(name, 9, progress="over") for name in names),
        memory(seconds + 1, at_rest=True, tainted=tainted),
    ]


def looks(hours: float, sizes: Callable[[float], float], *, every: float = 10.0) -> list[MemoryLook]:
    """Looks at SUnreclaim under load; `sizes` gives MB by hour."""
    number = int(hours * 3600 / every)
    return [
        MemoryLook(
            elapsed=place * every,
            at_rest=False,
            kb={"SUnreclaim": int(sizes(place * every / 3600) * 1024)},
            tasks=None,
            files=None,
            tainted=None,
        )
        for place in range(number)
    ]
