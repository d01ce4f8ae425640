"""Pages of the server without a curve: the list of runs, signing in, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdyno.base.errors import KdynoError
from kdyno.base.version import __version__
from kdyno.report.history_html import Viewer, environment, index_frame
from kdyno.store.listing import RunSummary

MOST_RUNS = 1000


def runs_page(runs: Sequence[RunSummary], viewer: Viewer) -> str:
    """Return the list of the newest runs."""
    return _render("served_runs.html.j2", viewer, runs=runs[:MOST_RUNS], older=max(0, len(runs) - MOST_RUNS))


def sign_in_page(viewer: Viewer, *, writable: bool) -> str:
    """Return the form that takes a token, or says that nobody may write."""
    return _render("served_sign_in.html.j2", viewer, writable=writable)


def error_page(error: KdynoError, viewer: Viewer) -> str:
    return _render("served_error.html.j2", viewer, message=str(error), hint=error.advice)


def _render(template: str, viewer: Viewer, **parts: Any) -> str:
    frame = index_frame(is_served=True)
    return (
        environment()
        .get_template(template)
        .render(frame=frame, viewer=viewer, version=__version__, report=None, **parts)
    )
