"""The kernel configuration: a base, the requests on top of it, and the .config that the kernel's own tools make."""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.kernel.knobs.kconfig import MOST_BYTES, SET, refuse_commands
from kdyno.kernel.knobs.origin import options_of

INTERACTIVE = ("config", "menuconfig", "nconfig", "xconfig", "gconfig", "oldconfig", "helpnewconfig", "listnewconfig")
LOCAL = ("localmodconfig", "localyesconfig")
GZIP = 16 + zlib.MAX_WBITS
RUNNING = "running"
"""The configuration of this host's kernel."""
RUNNING_CONFIGS = ("/boot/config-{release}", "/lib/modules/{release}/config", "/proc/config.gz")


class UnknownBase(UserError):
    message = "`{spec}` names no base configuration"
    hint = (
        "name a base: `dyno` (`paths` for ARCH=um), file:/path/to/.config, `running`, make:tinyconfig, make:defconfig "
        "or make:localmodconfig?lsmod=FILE&config=FILE"
    )


class BaseMissing(UserError):
    message = "can't read {path}, which the base configuration {spec} needs: {why}"
    hint = "name a file that holds the output of lsmod, or a .config"


class BaseEmpty(UserError):
    message = "{path}, which the base configuration {spec} names, has no line as in a .config"
    hint = "name a .config, as those of the distribution in /boot/config-*"


class BaseIsInteractive(UserError):
    message = "`make {target}` asks questions, so it can't be a base"
    hint = "run it by hand, and name its .config: file:/path/to/.config"


class Base(Frozen):
    """The start of the configuration."""

    spec: str
    kind: Literal["fragment", "config", "make"]
    """A list of requests on top of allnoconfig; a whole .config; or a target of the kernel's make."""
    text: str = ""
    """The fragment, the .config, or the .config that a target starts from."""
    target: str = ""
    lsmod: str = ""


def resolve_base(spec: str) -> Base:
    """Read all that the base is made of; the result decides the image, and is part of its key.

    Raise ValueRuns.
    """
    base = _read_base(spec)
    lines = enumerate(base.text.split("\n"), start=1)
    values = ((number, match) for number, line in lines if (match := SET.fullmatch(line.strip())))
    refuse_commands(
        KconfigRequest(symbol=set_[1], value=set_[2], by=f"line {number} of {spec}") for number, set_ in values
    )
    return base


def _read_base(spec: str) -> Base:
    scheme, colon, rest = spec.partition(":")
    if spec == RUNNING:
        return Base(spec=spec, kind="config", text=_running_config(spec))
    if not colon:
        bundled = files("kdyno").joinpath("data", "kconfig", f"{spec}.config")
        if not re.fullmatch(r"[\w.-]+", spec) or not bundled.is_file():
            raise UnknownBase(spec=spec)
        return Base(spec=spec, kind="fragment", text=bundled.read_text(encoding="utf-8"))
    if scheme == "file" and rest:
        return Base(spec=spec, kind="config", text=_read_config(Path(rest), spec))
    if scheme == "make":
        return _make_base(spec, rest)
    raise UnknownBase(spec=spec)


def _make_base(spec: str, rest: str) -> Base:
    target = rest.partition("?")[0]
    options = options_of(spec)
    if target in INTERACTIVE:
        raise BaseIsInteractive(target=target)
    allowed = {"lsmod", "config"} if target in LOCAL else set()
    if not re.fullmatch(r"\w[\w.-]*config", target, re.ASCII) or set(options) - allowed:
        raise UnknownBase(spec=spec)
    if target not in LOCAL:
        return Base(spec=spec, kind="make", target=target)
    lsmod = _read(Path(options["lsmod"]), spec) if "lsmod" in options else process.output(["lsmod"])
    config = _read_config(Path(options["config"]), spec) if "config" in options else _running_config(spec)
    return Base(spec=spec, kind="make", target=target, lsmod=lsmod, text=config)


def _running_config(spec: str) -> str:
    candidates = [Path(candidate.format(release=os.uname().release)) for candidate in RUNNING_CONFIGS]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise BaseMissing(path=candidates[0], spec=spec, why="this host doesn't tell its kernel's configuration")
    return _read_config(path, spec)


def _read_config(path: Path, spec: str) -> str:
    """Return the text of a .config. Kconfig ignores what it doesn't know: it would take any file, for nothing set."""
    text = _read(path, spec)
    if not read_config(text):
        raise BaseEmpty(path=path, spec=spec)
    return text


def _read(path: Path, spec: str) -> str:
    try:
        content = read_whole(path, MOST_BYTES)
        if content.startswith(b"\x1f\x8b"):
            content = _gunzipped(content)
    except OSError as error:
        raise BaseMissing(path=path, spec=spec, why=error.strerror) from error
    except zlib.error as error:
        raise BaseMissing(path=path, spec=spec, why=f"it is not a valid gzip file: {error}") from error
    return content.decode(errors="replace")


def _gunzipped(content: bytes) -> bytes:
    unpacking = zlib.decompressobj(GZIP)
    unpacked = unpacking.decompress(content, MOST_BYTES + 1)
    if len(unpacked) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES:,} bytes once unpacked")
    if not unpacking.eof:
        raise zlib.error("it is cut off")
    return unpacked


def steps(base: Base, asks: Iterable[KconfigRequest], objects: Path, make: Sequence[str]) -> list[list[str]]:
    """Write the files that go into the configuration, and return the commands that make .config from them.

    merge_config.sh only merges here (-m): the make that follows gets the same words as the build, because the
    compiler decides symbols too.
    """
    merge = ["sh", str(objects.parent / "scripts" / "kconfig" / "merge_config.sh"), "-m", "-O", str(objects)]
    asked = objects / "asked.config"
    asked.write_text(fragment(asks), encoding="utf-8")
    start = objects / "base.config"
    if base.kind == "fragment":
        start.write_text(base.text, encoding="utf-8")
        merged = objects / "merged.config"
        move = ["mv", str(objects / ".config"), str(merged)]
        return [[*merge, str(start), str(asked)], move, [*make, f"KCONFIG_ALLCONFIG={merged}", "allnoconfig"]]
    if base.kind == "config":
        start.write_text(base.text, encoding="utf-8")
        return [[*merge, str(start), str(asked)], [*make, "olddefconfig"]]
    made_in, first = objects, [*make, base.target]
    if base.lsmod:
        made_in = objects.parent / "localmodconfig"
        made_in.mkdir(exist_ok=True)
        (made_in / ".config").write_text(base.text, encoding="utf-8")
        (made_in / "lsmod.txt").write_text(base.lsmod, encoding="utf-8")
        first = [*_in_the_tree(make, objects, made_in), f"LSMOD={made_in / 'lsmod.txt'}", base.target]
    keep = ["cp", str(made_in / ".config"), str(start)]
    return [first, keep, [*merge, str(start), str(asked)], [*make, "olddefconfig"]]


def _in_the_tree(make: Sequence[str], objects: Path, made_in: Path) -> list[str]:
    """Return the command with the source tree itself in place of the directory of links to its entries: localmodconfig
    finds Makefiles by a `find` that follows no links, and drops every module without any.
    """
    tree = (objects.parent / "Kconfig").resolve().parent
    places = {str(objects.parent): str(tree), f"O={objects}": f"O={made_in}"}
    return [places.get(word, word) for word in make]


def fragment(asks: Iterable[KconfigRequest]) -> str:
    """Return the requests as a Kconfig fragment, each below the name of its origin."""
    lines = []
    for request in asks:
        lines.append(f"# asked by {request.by}")
        lines.append(
            f"# CONFIG_{request.symbol} is not set"
            if request.value == "n"
            else f"CONFIG_{request.symbol}={request.value}"
        )
    return "\n".join(lines) + "\n"
