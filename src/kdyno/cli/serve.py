"""`kdyno serve`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.extras import require_extra
from kdyno.cli.common import state_of, store_url_of, talk_of

ADDRESS = "127.0.0.1:8420"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", default=ADDRESS, metavar="HOST:PORT", help="where to listen (default: %(default)s, this host alone)"
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a name by which browsers reach this host; requests to other names are refused; can be repeated",
    )
    parser.add_argument("--tokens", type=Path, metavar="FILE", help="who may write: lines NAME TOKEN (default: nobody)")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="serve by TLS: a certificate chain in PEM")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the key of the certificate, without a password")


def act(args: argparse.Namespace) -> int:
    from kdyno.report.served.errors import CertificateIncomplete

    require_extra("serve")
    if bool(args.certificate) != bool(args.key):
        raise CertificateIncomplete
    from kdyno.report.served.server import Listening, serve
    from kdyno.store.artefacts import Artefacts

    store, _ = store_url_of(args, "read")
    listening = Listening(args.listen, tuple(args.name), args.certificate, args.key)
    serve(store, Artefacts(state_of(args).artefacts), listening, args.tokens, talk_of(args))
    return 0
