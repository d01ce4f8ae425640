"""The base of every type that passes from stage to stage: immutable, strict about unknown keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Discriminator, GetJsonSchemaHandler, Tag
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Frozen(BaseModel):
    """An immutable value with a published schema; an unknown key is an error. It is written in the form in which it is
    read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, serialize_by_alias=True)


class TypeRequired:
    """Marks a kind in a union whose values must name their `type`: the JSON schema then fits no value of the default
    kind.
    """

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "required": ["type"]}


def one_of(kinds: Mapping[str, type[BaseModel]]) -> Any:
    """Return a type for pydantic: a value is of the kind that its `type` names, or of the first kind if it names
    none.
    """
    first = next(iter(kinds))

    def kind_of(value: Any) -> str:
        return str(value.get("type", first) if isinstance(value, dict) else getattr(value, "type", first))

    marks = {name: (Tag(name),) if name == first else (Tag(name), TypeRequired()) for name in kinds}
    return Annotated[
        Union[tuple(Annotated[model, *marks[name]] for name, model in kinds.items())],  # noqa: UP007
        Discriminator(kind_of),
    ]


def digest(value: Any) -> str:
    """Return the SHA-256 (64 hex digits) of a JSON-able value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
