"""What the tests of the fleet share: a PostgreSQL server, and an empty queue in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, postgres_server, server_programs
from sqlalchemy import create_engine, text

from kdyno.fleet.queue.queue import Queue

FLEET = "fleet-of-tests"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own; it is stopped at the end."""
    if server_programs() is None:
        pytest.skip("no PostgreSQL is installed (/usr/lib/postgresql/*/bin/initdb)")
    with postgres_server() as server:
        yield server


def empty(url: str) -> None:
    """Remove all tables of a database."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
    engine.dispose()


@pytest.fixture
def queue(server: PostgresServer) -> Iterator[Queue]:
    """An empty queue, with leases that no test outlives unless it ends them."""
    empty(server.url)
    with Queue(server.url, lease_seconds=3600) as queue:
        queue.migrate(FLEET)
        yield queue
