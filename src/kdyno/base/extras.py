"""Libraries that kdyno needs for some of its verbs alone: extras of the package, as pip calls them."""

from __future__ import annotations

from importlib.util import find_spec

from kdyno.base.errors import UserError

EXTRAS = {
    "postgresql": ("a store on PostgreSQL", ("psycopg",)),
    "fleet": ("a fleet", ("psycopg", "alembic", "cryptography", "distributed", "fsspec")),
    "serve": ("`kdyno serve`", ("starlette", "uvicorn")),
    "symbolic": ("`kdyno lab prove --symbolic`", ("angr",)),
}
"""By extra: what needs it, and the names by which its libraries are imported."""


class ExtraMissing(UserError):
    message = "{purpose} needs the library {library}, which is not installed"
    hint = "run: {command}"


def missing_libraries(extra: str) -> list[str]:
    """Return the libraries of an extra that are not installed."""
    return [library for library in EXTRAS[extra][1] if find_spec(library) is None]


def way_to_install_extra(extra: str) -> str:
    return f"pip install 'kdyno[{extra}]'"


def require_extra(extra: str) -> None:
    """Raise ExtraMissing unless the libraries are installed."""
    if missing := missing_libraries(extra):
        raise ExtraMissing(purpose=EXTRAS[extra][0], library=missing[0], command=way_to_install_extra(extra))
