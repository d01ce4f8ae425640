"""The base of every type that flows along the line: immutable, strict about unknown keys."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value with a written schema; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def digest(value: Any) -> str:
    """Return the SHA-256 (64 hex digits) of a JSON-able value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
