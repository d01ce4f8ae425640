"""A QEMU that boots nothing: it leaves the agent stream, the console and the PMU record that a test gives it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kdyno.base.measurement import Benchmark, Sample

SCRIPT = """\
#!/bin/sh
# Words: as QEMU's. FAKE is the directory with what to say, to leave and to end with.
FAKE={directory}
echo "$@" >> $FAKE/commands
case "$*" in
    --version) echo "QEMU emulator version 9.9.9 (fake)"; exit 0;;
    *"-M none"*) cat $FAKE/probe; exit 1;;
esac
for word; do
    case "$word" in
        file,id=agent,path=*) cp $FAKE/stream "${{word#file,id=agent,path=}}";;
        file:*) [ ! -e $FAKE/console ] || cp $FAKE/console "${{word#file:}}";;
        *,out=*) out="${{word#*,out=}}"; [ ! -e $FAKE/record ] || cp $FAKE/record "${{out%%,*}}";;
    esac
done
case "$*" in *-initrd*) [ ! -e $FAKE/hang ] || {{ touch $FAKE/hanging; exec sleep 600; }};; esac
"""


class FakeQemu:
    """Stands where QEMU is looked for; `probe` is what it says when it is given a plugin alone."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory / "fake"
        self.directory.mkdir()
        program = self.directory / "qemu-system-x86_64"
        program.write_text(SCRIPT.format(directory=self.directory))
        program.chmod(0o755)
        patch.setenv("PATH", f"{self.directory}{os.pathsep}{os.environ['PATH']}")
        plugin = self.directory / "plugin.so"
        plugin.write_bytes(b"not really")
        patch.setenv("KDYNO_PMU_PLUGIN", str(plugin))
        self.probe("kdyno-pmu: the option out is missing")
        self.leaves(stream=b"")

    def probe(self, output: str) -> None:
        (self.directory / "probe").write_text(output + "\n")

    def leaves(self, *, stream: bytes | None = None, console: bytes | None = None, record: bytes | None = None) -> None:
        """From now on boots leave these files; None: as before."""
        for name, content in {"stream": stream, "console": console, "record": record}.items():
            if content is not None:
                (self.directory / name).write_bytes(content)

    def hangs(self) -> None:
        """From now on boots don't end by themselves."""
        (self.directory / "hang").touch()

    def is_hanging(self) -> bool:
        """Return whether a boot has left its files, and doesn't end."""
        return (self.directory / "hanging").exists()

    @property
    def commands(self) -> list[str]:
        """The words of every call, the oldest first."""
        return (self.directory / "commands").read_text().splitlines()

    @property
    def was_called(self) -> bool:
        return (self.directory / "commands").exists()

    @property
    def boots(self) -> int:
        return sum("-initrd" in command for command in self.commands)


def stream_of(benchmarks: list[Benchmark], samples: list[Sample], *, whole: bool = True) -> bytes:
    """An agent stream with these records."""
    hello = {"type": "hello", "agent": "0", "kernel": "6", "lane": "model", "icount_shift": 5, "cpus": 1, "init": True}
    records = [
        hello,
        *({"type": "benchmark", **benchmark.model_dump(exclude={"is_part"})} for benchmark in benchmarks),
        *({"type": "sample", **sample.model_dump(exclude_none=True)} for sample in samples),
    ]
    if whole:
        records.append({"type": "end", "records": len(records)})
    return "".join(json.dumps({"v": 1, **record}) + "\n" for record in records).encode()
