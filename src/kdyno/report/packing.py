"""Packed parts of a page: gzip in base 85, which a script of the page unpacks when it is needed."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib.resources import files

TEMPLATES = files("kdyno.report") / "templates"
_BASE_85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""Python's digits of base 85 (RFC 1924)."""
LETTERS = _BASE_85.translate(str.maketrans("&<>", ".,:"))
"""The digits of base 85 in a page: none starts a tag or a character reference."""
_TO_LETTERS = bytes.maketrans(_BASE_85.encode(), LETTERS.encode())
_FROM_LETTERS = bytes.maketrans(LETTERS.encode(), _BASE_85.encode())


def pack(text: str) -> str:
    """Return a text as gzip in base 85, equal for equal texts. It is 6 % shorter than in base64."""
    return base64.b85encode(gzip.compress(text.encode(), mtime=0)).translate(_TO_LETTERS).decode()


def unpack(packed: str) -> str:
    """Return the text that `pack` packed."""
    return gzip.decompress(base64.b85decode(packed.encode().translate(_FROM_LETTERS))).decode()


def unpacking_script() -> str:
    """Return the script with the function `unpack(id)`: the text that the element with this id has packed."""
    return f"const LETTERS = {json.dumps(LETTERS)};\n{read_template('unpack.js')}"


def read_template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """Return the name that a page's policy gives a script or a style, by its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
