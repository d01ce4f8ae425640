"""Making an image of a built kernel, like those that are built here: with the files next to it, kept by content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.digests import file_digest
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import digest
from kdyno.base.plain_tar import END, entry
from kdyno.base.state import State
from kdyno.base.version import __version__
from kdyno.kernel import images
from kdyno.kernel.built_kernels import debian
from kdyno.kernel.built_kernels.configuration import configuration_in
from kdyno.kernel.built_kernels.header import MOST_KERNEL, Header, NotABootableKernel, read_header
from kdyno.kernel.built_kernels.kallsyms import START, system_map
from kdyno.kernel.built_kernels.modules import ModuleMissing, closure, files_below, wanted_of
from kdyno.kernel.built_kernels.packed import payload_of
from kdyno.kernel.files_of import config_of, module_directory, system_maps_of
from kdyno.kernel.image import Image, ImageFile, ImageRecord, ImageSizes, SourceIdentity
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs.image import DEBIAN
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source_trees import Say
from kdyno.kernel.toolchain import ToolchainIdentity

FORMAT = 3
"""Part of every key; raised when the same files would give another image, or another start of it."""
MOST_VMLINUX = 200_000_000
"""Bytes of the vmlinux in a bzImage."""
MOST_SYMBOLS = 100_000_000
"""Bytes of a System.map."""
NO_SYMBOLS = (
    "neither System.map nor tables of its own (CONFIG_KALLSYMS) tell its functions: the emulated PMU can't count"
)
ITS_OWN_SYMBOLS = "functions are known by the kernel's own tables (CONFIG_KALLSYMS)"
TEXT_LINE = re.compile(rb"^([0-9a-f]{16}) [tTDA] (_text|_etext)$", re.MULTILINE)


class BuiltKernelMissing(UserError):
    message = "there is no kernel {path}: {why}"
    hint = "image names a file such as /boot/vmlinuz-RELEASE, or a package: debian:linux-image-amd64"


class ConfigMissing(UserError):
    message = "the configuration of {path} is not known: there is none next to it, and the kernel itself has none"
    hint = "put it next to the kernel, as config-{release} next to vmlinuz-{release}: kdyno must know what boots"


@dataclass(frozen=True)
class BuiltKernel:
    """A built kernel and the files next to it."""

    path: Path
    origin: str
    """The name for people: its path, or package and version."""
    sha256: str
    kernel: bytes
    header: Header
    config: bytes
    symbols: bytes
    """The content of a System.map next to it; empty if there is none."""
    modules: Mapping[str, bytes]
    """Modules by name, each after those that it needs."""


def adopted(spec: str, state: State, say: Say) -> Image:
    """Return the image that a built kernel is kept as; `spec` is the path of a bzImage, or debian:PACKAGE.

    Raise NotABootableKernel, BuiltKernelMissing, ConfigMissing, ModuleMissing, ModuleUnfit and NotUnpackable, and the
    errors of getting a package.
    """
    built = _built_kernel(spec, state, say)
    modules = {name: hashlib.sha256(content).hexdigest() for name, content in built.modules.items()}
    key = digest(
        {
            "format": ["built kernel", FORMAT],
            "kernel": built.sha256,
            "config": hashlib.sha256(built.config).hexdigest(),
            "symbols": hashlib.sha256(built.symbols).hexdigest(),
            "modules": modules,
        }
    )
    with state.lock(f"image-{key}", on_wait=lambda: say("waiting for another kdyno that reads the same kernel")):
        if not images.is_built(key, state):
            say(f"reading {built.origin}: Linux {built.header.release}")
            _keep(key, spec, built, state)
    return images.load_image(key, state)


def _built_kernel(spec: str, state: State, say: Say) -> BuiltKernel:
    if spec.startswith(DEBIAN):
        package = spec.removeprefix(DEBIAN)
        tree, origin = debian.package_tree(package, state, say)
        path = debian.kernel_in(tree, package)
    else:
        path, origin = Path(spec), spec
    kernel = _read(path)
    header = read_header(kernel, path)
    beside = config_of(path)
    config = read_whole(beside, MOST_BYTES) if beside else _inner_config(kernel, header, path)
    return BuiltKernel(
        path=path,
        origin=origin,
        sha256=file_digest(path, state),
        kernel=kernel,
        header=header,
        config=config,
        symbols=_symbols_beside(path),
        modules=_modules(path, header, read_config(config.decode(errors="replace"))),
    )


def _read(path: Path) -> bytes:
    try:
        return read_whole(path, MOST_KERNEL)
    except OSError as error:
        raise BuiltKernelMissing(path=path, why=error.strerror) from error


def _inner_config(kernel: bytes, header: Header, path: Path) -> bytes:
    config = configuration_in(payload_of(kernel, header.payload, MOST_VMLINUX, str(path)))
    if config is None:
        raise ConfigMissing(path=path, release=header.release)
    return config


def _symbols_beside(path: Path) -> bytes:
    """Return a System.map with symbols in it: Debian's only says where to find one."""
    for place in system_maps_of(path):
        with suppress(OSError):
            content = read_whole(place, MOST_SYMBOLS)
            if f" T {START}\n".encode() in content:
                return content
    return b""


def _modules(path: Path, header: Header, config: Mapping[str, str]) -> dict[str, bytes]:
    """Return the modules that may have to be loaded for this kernel, each after those that it needs.

    Modules that only some guests need may be missing; once the machine is known, they are checked.
    """
    directory = module_directory(path, header.release)
    files = files_below(directory) if directory else {}
    wanted = [name for name in wanted_of(config) if name in files]
    try:
        return closure(wanted, files)
    except KeyError as error:
        [name] = error.args
        raise ModuleMissing(kernel=path, name=name, directory=directory) from None


def _keep(key: str, spec: str, built: BuiltKernel, state: State) -> None:
    vmlinux = payload_of(built.kernel, built.header.payload, MOST_VMLINUX, str(built.path))
    if not vmlinux.startswith(b"\x7fELF\x02"):
        raise NotABootableKernel(path=built.path, why="the file packed in it is not a vmlinux of 64 bits")
    own = "" if built.symbols else system_map(vmlinux)
    symbols = built.symbols or own.encode()
    config = read_config(built.config.decode(errors="replace"))
    files: dict[ImageFile, bytes] = {"bzImage": built.kernel, "vmlinux": vmlinux, "config": built.config}
    if symbols:
        files["System.map"] = symbols
    if built.modules:
        files["modules.tar"] = b"".join(entry(f"{name}.ko", content) for name, content in built.modules.items()) + END
    record = ImageRecord(
        key=key,
        source=SourceIdentity(
            spec=spec, identity=f"kernel:{built.sha256}", version=built.header.version, origin=built.origin
        ),
        recipe=Recipe(image=spec),
        base="",
        toolchain=toolchain_of(config),
        release=built.header.release,
        sizes=ImageSizes(bzimage=len(built.kernel), vmlinux=len(vmlinux), text=text_bytes(symbols)),
        build_seconds=0,
        steps=0,
        make=(),
        environment={},
        config_sha256=hashlib.sha256(built.config).hexdigest(),
        kdyno=__version__,
        banner=built.header.banner,
        modules=tuple(built.modules),
        notes=(ITS_OWN_SYMBOLS,) if own else () if symbols else (NO_SYMBOLS,),
    )
    images.store_files(record, files, state)


def text_bytes(system_map: bytes) -> int:
    """Return the bytes from _text to _etext, with padding: no System.map has the sizes of functions. 0 if it isn't
    known. Pure.
    """
    marks = {name: int(address, 16) for address, name in TEXT_LINE.findall(system_map)}
    return max(marks.get(b"_etext", 0) - marks.get(b"_text", 0), 0)


def toolchain_of(config: Mapping[str, str]) -> ToolchainIdentity:
    """Return the compiler that a configuration names (since Linux 4.19); its files are unknown here. Pure."""
    banner = config.get("CC_VERSION_TEXT", "").strip('"') or "a compiler that its configuration doesn't tell"
    family = "clang" if config.get("CC_IS_CLANG") == "y" else "gcc"
    number = config.get("CLANG_VERSION" if family == "clang" else "GCC_VERSION", "")
    version = ""
    if number.isdecimal() and int(number):
        value = int(number)
        version = f"{value // 10000}.{value // 100 % 100}.{value % 100}"
    return ToolchainIdentity(name=family, family=family, version=version, banner=banner, digest="")
