"""The last self-test of a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdyno.selftest.model import SelfTest
from kdyno.store.records import Lane
from kdyno.store.store import Store


def last_of_host(store: Store, host: Mapping[str, Any], lane: Lane) -> SelfTest | None:
    """The newest one on record of a host, as kdyno.host describes it, in a lane."""
    for kept in store.selftests():
        found = SelfTest.model_validate(kept)
        if (found.host, found.lane) == (host, lane):
            return found
    return None
