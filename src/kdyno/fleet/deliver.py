"""What Dask calls on a worker. Both sides know these functions by name; all that travels is text."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from distributed import get_worker

from kdyno.fleet.package_digest import this_kdyno

if TYPE_CHECKING:
    from kdyno.fleet.worker import Attendant


def deliver(ticket: str) -> str:
    """Give a ticket to the worker that Dask chose."""
    return _attendant().carry_out(ticket)


def ask(question: str) -> str:
    """Ask the worker that the client chose."""
    return _attendant().answer(question)


def identify() -> str:
    """Return the kdyno of the process that is asked: the scheduler."""
    return this_kdyno()


def _attendant() -> Attendant:
    return cast("Attendant", get_worker().kdyno)
