"""Lints packages by the linter of their distribution."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from kdyno.base import process
from kdyno.base.frozen import Frozen
from kdyno.ship.package_content import PackageKind

SECONDS = 1800.0
LINTERS: Mapping[PackageKind, str] = {"deb": "lintian", "rpm": "rpmlint"}
"""By kind of package; namcap, pacman's, isn't packaged by Debian."""
NOT_FOR_DEBIAN = ("bogus-mail-host", "bogus-mail-host-in-debian-changelog", "initial-upload-closes-no-bugs")
"""Findings about what only a package in Debian's archive has: a maintainer, and the bug that asks for it."""
NOT_FOR_RPM = ("no-signature", "no-binary")
"""Findings about what is so: minisign's signature is a file beside the package, and rpmlint doesn't know a vmlinuz."""
LINTIAN_LINE = re.compile(r"^(?P<level>[EWIP]): (?P<package>\S+): (?P<tag>\S+)(?P<about>.*)$")
RPMLINT_LINE = re.compile(r"^(?P<package>\S+)\.\w+: (?P<level>[EWI]): (?P<tag>\S+)(?P<about>.*)$")


class PackagingFinding(Frozen):
    """A finding of a linter."""

    level: Literal["E", "W", "I", "P"]
    package: str
    tag: str
    about: str


def lint(packages: Sequence[Path], kind: PackageKind) -> tuple[PackagingFinding, ...] | None:
    """Return what the linter of this kind finds in packages; None if it isn't installed, or there is none."""
    linter = LINTERS.get(kind)
    if linter is None or shutil.which(linter) is None:
        return None
    if kind == "deb":
        root = ["--allow-root"] if os.geteuid() == 0 else []
        tags = f"--suppress-tags={','.join(NOT_FOR_DEBIAN)}"
        words = [linter, "--no-cfg", "--color=never", "--fail-on=none", tags, *root, *map(str, packages)]
        accepted, pattern = {0}, LINTIAN_LINE
    else:
        words, accepted, pattern = [linter, *map(str, packages)], {0, 64}, RPMLINT_LINE
    done = process.attempt(words, timeout=SECONDS, env={"LC_ALL": "C.UTF-8"})
    if done.returncode not in accepted:
        raise process.failure(words, done.returncode, done.stderr or done.stdout)
    matches = map(pattern.match, done.stdout.splitlines())
    return tuple(
        PackagingFinding.model_validate({name: text.strip() for name, text in match.groupdict().items()})
        for match in matches
        if match and match["tag"] not in NOT_FOR_RPM
    )
