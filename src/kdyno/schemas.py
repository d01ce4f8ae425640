"""The JSON schemas of everything that crosses a process boundary; schemas/ holds them frozen."""

from __future__ import annotations

from typing import Any

from kdyno.experiment.models import ExperimentFile
from kdyno.explain.command import Explained
from kdyno.instrument.job import Job
from kdyno.instrument.stream import RECORD
from kdyno.kernel.image import ImageRecord
from kdyno.march.report import MarchReport
from kdyno.verdicts import model

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The schema of `experiment`, `explanation`, `image`, `job`, `march`, `record` or `report`."""
    match name:
        case "experiment":
            found = ExperimentFile.model_json_schema()
        case "explanation":
            found = Explained.model_json_schema(mode="serialization")
        case "image":
            found = ImageRecord.model_json_schema()
        case "job":
            found = Job.model_json_schema()
        case "march":
            found = MarchReport.model_json_schema(mode="serialization")
        case "record":
            found = RECORD.json_schema()
        case "report":
            found = model.schema()
        case _:
            raise KeyError(name)
    return {"$schema": DIALECT, "title": f"kdyno {name}"} | found
