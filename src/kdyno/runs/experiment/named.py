"""Recipes by name: what kdyno found best, for `extends` and for `kdyno ab`. Each is a file of data/recipes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kdyno.base import toml
from kdyno.kernel.recipe import RecipeSpec

SUFFIX = ".toml"


@cache
def named_recipes() -> Mapping[str, RecipeSpec]:
    """Return the recipes by name."""
    folder = files("kdyno").joinpath("data", "recipes")
    return {
        entry.name.removesuffix(SUFFIX): RecipeSpec.model_validate(toml.parse(entry.read_text(encoding="utf-8")))
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(SUFFIX)
    }


def settings_of(recipe: RecipeSpec) -> dict[str, Any]:
    """Return the knobs that a recipe sets."""
    return {key: getattr(recipe, key) for key in recipe.model_fields_set if key in RecipeSpec.model_fields}


def merge(parent: Mapping[str, Any], child: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of both: single values of the child replace, tables merge, lists append."""
    settings = dict(parent)
    for key, value in child.items():
        match value:
            case dict():
                settings[key] = parent.get(key, {}) | value
            case tuple():
                settings[key] = parent.get(key, ()) + value
            case _:
                settings[key] = value
    return settings
