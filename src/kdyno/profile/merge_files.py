"""Merging files of profiles of either kind into one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.guest.pmu_write import write_pmu_record
from kdyno.profile.clang import all_records, merge_samples
from kdyno.profile.merge import Read, merge


class RecordsHaveNoWeights(UserError):
    message = "PMU records cannot be weighted: their counts are exact"
    hint = "remove --weights; a profile made from records gives every benchmark the same weight"


class WeightsMissing(UserError):
    message = "--weights has {weights} weights for {profiles} profiles"
    hint = "give one weight for each profile, such as --weights 3,1"


class Merged(Frozen):
    """The output of `kdyno profile merge --json`."""

    kind: Literal["records", "clang"]
    files: int
    boots: int | None
    """None for profiles of clang, which don't contain it."""
    benchmarks: int | None
    functions: int

    def in_words(self) -> str:
        if self.kind == "clang":
            return f"{self.files} profiles of clang, with {self.functions:,} functions"
        return f"{self.boots} boots, {self.benchmarks} benchmarks, {self.functions:,} functions"


def merge_files(paths: Sequence[Path], weights: Sequence[int] | None, out: Path) -> Merged:
    """Merge at least one profile into the file `out`. Raises what `merge` and `merge_samples` raise."""
    if all_records(paths):
        if weights:
            raise RecordsHaveNoWeights()
        record = merge([Read(path, read_pmu_record(path)) for path in paths])
        write_pmu_record(record, out)
        return Merged(
            kind="records",
            files=len(paths),
            boots=record.merged,
            benchmarks=len(record.regions),
            functions=len(record.functions),
        )
    if weights and len(weights) != len(paths):
        raise WeightsMissing(weights=len(weights), profiles=len(paths))
    functions = merge_samples(paths, weights or [1] * len(paths), out)
    return Merged(kind="clang", files=len(paths), boots=None, benchmarks=None, functions=functions)
