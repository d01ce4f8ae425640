"""Makes and checks the tables of a fleet's queue, by Alembic. Raises the errors of kdyno.fleet.errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, select, text

from kdyno.fleet.errors import OtherFleet, QueueMissing, QueueNewer, QueueOlder
from kdyno.fleet.queue import schema
from kdyno.fleet.queue.versions import r0003_host_check as newest

VERSION_TABLE = "kdyno_fleet_version"
HERE = Path(__file__).parent


def migrate(engine: Engine, where: str, fleet: str) -> None:
    """Bring the queue's tables to this kdyno's version, and note whose they are. Raises OtherFleet and QueueNewer."""
    script = _script()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('kdyno fleet'))"))  # one at a time
        _require_known(_version(connection), where, script)

        def upgrade(revision: Any, _context: MigrationContext) -> Sequence[Any]:
            return list(script._upgrade_revs("head", revision))

        with EnvironmentContext(Config(), script, fn=upgrade, destination_rev="head") as environment:
            environment.configure(connection=connection, target_metadata=schema.tables, version_table=VERSION_TABLE)
            environment.run_migrations()
        owner = connection.execute(select(schema.fleet.c.id)).scalar()
        if owner is None:
            connection.execute(schema.fleet.insert().values(id=fleet))
        elif owner != fleet:
            raise OtherFleet(where=where, theirs=owner, ours=fleet)


def require_current(engine: Engine, where: str, fleet: str) -> None:
    """Raise QueueMissing, QueueOlder, QueueNewer or OtherFleet unless the tables are this kdyno's and this fleet's."""
    with engine.begin() as connection:
        version = _version(connection)
        if version is None:
            raise QueueMissing(where=where)
        _require_known(version, where, _script())
        if version != newest.revision:
            raise QueueOlder(where=where, version=version, ours=newest.revision)
        owner = connection.execute(select(schema.fleet.c.id)).scalar()
        if owner != fleet:
            raise OtherFleet(where=where, theirs=owner, ours=fleet)


def _version(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _require_known(version: str | None, where: str, script: ScriptDirectory) -> None:
    known = [revision.revision for revision in script.walk_revisions()]
    if version is not None and version not in known:
        raise QueueNewer(where=where, version=version, ours=newest.revision)


def _script() -> ScriptDirectory:
    return ScriptDirectory(str(HERE), version_locations=[str(HERE / "versions")])
