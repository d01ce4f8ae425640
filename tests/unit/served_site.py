"""The server of the history in a thread of the tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kdyno.report.served.server import Listening, bind, make_server
from kdyno.report.served.site import Site
from kdyno.store.artefacts import Artefacts
from kdyno.store.url import parse


@contextmanager
def served(store: Path, tokens: Mapping[str, str]) -> Iterator[int]:
    """Serve a store on loopback, and give the port."""
    listening = Listening("127.0.0.1:0")
    site = Site(parse(f"sqlite:///{store}"), Artefacts(store.parent / "artefacts"), tokens, is_secure=False)
    with bind(listening) as bound:
        server = make_server(site, listening)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
