"""What all tests share: where they are, and the rule that CI may not skip what its machine can run."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# As kdyno itself does: on a busy machine the threads that numpy starts spin for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The width of the terminal that the tests are started in, which pytest-xdist hands to its workers.
os.environ.pop("COLUMNS", None)
# No test depends on the speed of its machine.
settings.register_profile("any-speed", deadline=None)
settings.load_profile("any-speed")

HERE = Path(__file__).parent


@pytest.fixture
def data() -> Path:
    """Recorded boots, patches and other files of tests."""
    return HERE / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with commands on toy kernels and with tests of the whole tree, whose files take the longest: workers then
    end with short ones, at nearly the same time. xdist keeps this order only with --no-loadscope-reorder.
    """
    slow = (HERE / "cli", HERE / "unit")
    items.sort(key=lambda item: item.path.parent not in slow)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """In CI everything that the tests need is installed, so a skipped test is a failed one."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {report.longrepr}"
