"""The process that serves the site, until a signal."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from kdyno.base.talk import Talk
from kdyno.base.text import clean
from kdyno.report.served.errors import AddressTaken, CertificateUnfit, NoName, NotAnAddress, TokensInClear
from kdyno.report.served.site import Site
from kdyno.report.served.tokens import read_tokens
from kdyno.store.artefacts import Artefacts
from kdyno.store.url import StoreUrl

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Listening:
    """Where the server listens, and what secures it."""

    address: str
    """HOST:PORT; port 0 is any free one."""
    names: tuple[str, ...] = ()
    """Further names by which browsers reach the host."""
    certificate: Path | None = None
    key: Path | None = None

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Raise NotAnAddress."""
        host, _, port = self.address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise NotAnAddress(text=clean(self.address))
        return host, int(port)

    @property
    def is_loopback(self) -> bool:
        host = self.host_and_port[0]
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_any_address(self) -> bool:
        """Return whether it is no address that a browser could name."""
        return self.host_and_port[0] in ("0.0.0.0", "::")

    @property
    def is_secure(self) -> bool:
        return self.certificate is not None


def serve(store: StoreUrl, artefacts: Artefacts, listening: Listening, tokens: Path | None, talk: Talk) -> None:
    """Answer requests until SIGINT or SIGTERM. Raise TokensUnfit, TokensInClear, NoName, NotAnAddress, AddressTaken,
    CertificateUnfit, and what reading the store raises.
    """
    names = read_tokens(tokens) if tokens else {}
    if names and not (listening.is_loopback or listening.is_secure):
        raise TokensInClear(address=listening.address)
    if listening.is_any_address and not listening.names:
        raise NoName(address=listening.address)
    _check_certificate(listening)
    bound = bind(listening)
    with bound:
        site = Site(store, artefacts, names, is_secure=listening.is_secure)
        talk.say(
            f"{url_of(listening, bound)}: {'signed-in people may write' if names else 'read only'}; Ctrl-C ends it"
        )
        with suppress(KeyboardInterrupt):  # a signal is the way to end it
            make_server(site, listening).run(sockets=[bound])


def make_server(site: Site, listening: Listening) -> uvicorn.Server:
    """Return the server of a site, which answers requests to names of this host alone."""
    hosts = [listening.host_and_port[0], *listening.names, *(LOOPBACK_NAMES if listening.is_loopback else ())]
    config = uvicorn.Config(
        site.application(hosts),
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    return uvicorn.Server(config)


def _check_certificate(listening: Listening) -> None:
    """Raise CertificateUnfit."""
    if listening.certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            listening.certificate, listening.key, password=_no_password
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CertificateUnfit(certificate=listening.certificate, key=listening.key, why=why) from error


def _no_password() -> str:
    raise ValueError("the key has a password")


def url_of(listening: Listening, bound: socket.socket) -> str:
    host = listening.names[0] if listening.names else listening.host_and_port[0]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if listening.is_secure else 'http'}://{shown}:{bound.getsockname()[1]}/"


def bind(listening: Listening) -> socket.socket:
    host, port = listening.host_and_port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        raise AddressTaken(address=clean(listening.address), why=error.strerror or str(error)) from error
    return bound
