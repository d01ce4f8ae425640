"""The actual CPU of a guest, from QEMU, after it has removed features that the accelerator lacks."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from qemu.qmp import ExecuteError, QMPClient

from kdyno.base.errors import UserError
from kdyno.base.process import spawn

T = TypeVar("T")

TIME_LIMIT = 30.0
"""The time for QEMU to start and answer, in seconds; usually a fraction of one."""


class CpuUnusable(UserError):
    message = "QEMU cannot report the features of CPU `{cpu}` with {accel}: {output}"
    hint = "choose a model of `qemu-system-x86_64 -cpu help`"


def missing_flags(qemu: str, accel: str, cpu: str, flags: Iterable[str]) -> list[str]:
    """Return the flags, spelled as in /proc/cpuinfo, that a guest with this -accel and -cpu lacks."""

    async def look(client: QMPClient) -> list[str]:
        return [flag for flag in flags if not await _has(client, flag)]

    return _ask_qemu(qemu, accel, cpu, look)


def guest_cpu(qemu: str, accel: str, cpu: str) -> tuple[str, bool]:
    """Return the CPUID vendor of a guest with this -accel and -cpu, and whether it has SMAP."""

    async def look(client: QMPClient) -> tuple[str, bool]:
        return str(await _property(client, "vendor")), await _has(client, "smap")

    return _ask_qemu(qemu, accel, cpu, look)


def _ask_qemu(qemu: str, accel: str, cpu: str, question: Callable[[QMPClient], Awaitable[T]]) -> T:
    """Return the answer to a question about the CPU of a guest that never runs. Raises CpuUnusable."""
    with tempfile.TemporaryDirectory(prefix="kdyno-qmp-") as scratch:
        return asyncio.run(_answer(qemu, accel, cpu, question, Path(scratch, "qmp")))


async def _answer(qemu: str, accel: str, cpu: str, question: Callable[[QMPClient], Awaitable[T]], socket: Path) -> T:
    logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # errors are raised, too
    client = QMPClient("kdyno")
    await client.start_server(str(socket))
    words = [qemu, "-nodefaults", "-no-user-config", "-display", "none", "-S", "-M", "pc"]
    words += ["-accel", accel, "-cpu", cpu, "-qmp", f"unix:{str(socket).replace(',', ',,')}"]
    with spawn(words, cwd=socket.parent, stdout=subprocess.PIPE) as guest:
        accepting = asyncio.create_task(client.accept())
        ended = asyncio.create_task(asyncio.to_thread(guest.wait))
        await asyncio.wait({accepting, ended}, timeout=TIME_LIMIT, return_when=asyncio.FIRST_COMPLETED)
        if not accepting.done() or accepting.exception():
            guest.kill()
            accepting.cancel()
            await asyncio.gather(accepting, ended, return_exceptions=True)
            assert guest.stdout is not None
            output = guest.stdout.read().decode(errors="replace").strip()[-300:]
            raise CpuUnusable(cpu=cpu, accel=accel, output=output or "it said nothing")
        try:
            return await question(client)
        finally:
            await client.disconnect()
            guest.kill()
            await ended


async def _has(client: QMPClient, flag: str) -> bool:
    """Return whether the CPU has a flag. QEMU has the names of /proc/cpuinfo for flags that compilers use."""
    try:
        return await _property(client, flag) is True
    except ExecuteError:
        return False  # a QEMU that doesn't support the feature can't give it to a guest


async def _property(client: QMPClient, name: str) -> object:
    cpus = await client.execute("query-cpus-fast")
    assert isinstance(cpus, list)
    return await client.execute("qom-get", {"path": cpus[0]["qom-path"], "property": name})
