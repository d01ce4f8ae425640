"""Whether a compiler knows a CPU: the compiler is asked; the table only tells which version would."""

from __future__ import annotations

import difflib
import re
import tomllib
from functools import cache
from importlib.resources import files

from kdyno import process
from kdyno.errors import UserError
from kdyno.kernel.toolchain import Toolchain

SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class CpuTooNew(UserError):
    message = "-{flag}={cpu} can't be had with {name} {version}: it needs {needed}"
    hint = "set toolchain to a compiler that knows {cpu}, or choose an older {flag}; {name} knows {nearest}"


class CpuUnknown(UserError):
    message = "-{flag}={cpu} can't be had with {name} {version}: {said}"
    hint = "did you mean {nearest}?"


def check_cpu(flag: str, cpu: str, toolchain: Toolchain) -> None:
    """Raise unless the compiler takes -march=CPU (or -mtune=CPU) for 64-bit code."""
    said = _refusal(flag, cpu, toolchain)
    if said is None:
        return
    facts = {
        "flag": flag,
        "cpu": cpu,
        "name": toolchain.identity.name,
        "version": toolchain.identity.version,
        "nearest": nearest(cpu, known_cpus(said)),
    }
    row = table().get(cpu)
    if row is None:
        raise CpuUnknown(said=said.partition("\n")[0].removeprefix("cc1: ").removeprefix("error: "), **facts)
    needed = " or ".join(f"{family} {version}" for family, version in row.items())
    raise CpuTooNew(needed=needed, **facts)


def _refusal(flag: str, cpu: str, toolchain: Toolchain) -> str | None:
    if not SANE.fullmatch(cpu):
        return "that is no name of a CPU"
    command = [toolchain.command, f"-{flag}={cpu}", "-E", "-x", "c", "/dev/null"]
    asked = process.attempt(command, env={"LC_ALL": "C"})
    return None if asked.returncode == 0 else asked.stderr.strip()


def known_cpus(said: str) -> list[str]:
    """The names that gcc (`valid arguments ... are: a b;`) or clang (`valid target CPU values are: a, b`) offers."""
    offered = re.search(r"valid (?:arguments|target CPU values).* are: ([^;\n]*)", said)
    return re.findall(r"[^\s,]+", offered[1]) if offered else []


def nearest(cpu: str, known: list[str]) -> str:
    """The known names that look most like it, for a hint."""
    names = difflib.get_close_matches(cpu, known or list(table()), n=3, cutoff=0.5)
    return ", ".join(names or (known or list(table()))[-4:])


def native_facts(flag: str, toolchain: Toolchain) -> tuple[str, ...]:
    """What `native` stands for on this host, as the compiler's driver expands it."""
    command = [toolchain.command, f"-{flag}=native", "-###", "-c", "-x", "c", "/dev/null", "-o", "/dev/null"]
    said = process.attempt(command, env={"LC_ALL": "C"}).stderr
    expanded = next((line for line in said.splitlines() if "cc1" in line), "")
    return (f"{flag}=native: " + re.sub(r"\S*/tmp/\S*", "", expanded).strip(),)


@cache
def table() -> dict[str, dict[str, str]]:
    """CPU -> compiler family -> first version that knows it."""
    text = files("kdyno").joinpath("data/march.toml").read_text()
    return {cpu: {str(k): str(v) for k, v in row.items()} for cpu, row in tomllib.loads(text).items()}
