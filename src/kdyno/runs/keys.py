"""The key of a boot: a content hash of everything that determines it, known before anything is built.

In the model lane a boot is a function of its key, so that any run may use it. In the wall lane it belongs to its
series: to the variants that it alternated with, to its host and its block; see run_plan.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kdyno.base.frozen import digest
from kdyno.boot.base import Description
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.loads import digest_of_loads


def boot_key(
    image: str,
    cmdline: Sequence[str],
    job: Job,
    about: Description,
    *,
    seed: int,
    replicate: Mapping[str, Any],
    reading: Mapping[str, Any] | None = None,
) -> str:
    """Return a content hash (64 hex digits) of everything that determines a boot.

    `replicate` distinguishes boots that are otherwise equal. `reading` is how samples are read from the output of the
    boot, if the agent doesn't report samples. Raises ProgramMissing.
    """
    return digest(
        {
            "image": image,
            "cmdline": list(cmdline),
            "job": job.model_dump(mode="json"),
            "machine": about.facts,
            "limits": about.limits.model_dump() if about.limits else None,
            "seed": seed,
            "replicate": dict(replicate),
            "reading": dict(reading or {}),
            **digest_of_loads(job.programs),
        }
    )
