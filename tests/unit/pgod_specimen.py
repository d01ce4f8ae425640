"""Counters as a kernel shows them, snapshots of them as kdyno-pgod sends them, and an ssh that goes nowhere."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from gzip import compress
from pathlib import Path
from typing import Any

SSH = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/ssh.log"
while :; do
    case $1 in
        -T) shift ;;
        -o) shift 2 ;;
        --) shift; break ;;
        *) echo "no host" >&2; exit 255 ;;
    esac
done
shift
exec sh -c "$*"
"""
"""Drops ssh's options and the host, and runs the command here, by a shell, as sshd does."""
BOOTS = ("11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
KERNEL = {"release": "6.12.117", "build_id": "80180898f590"}
HEAD = "root/build/o"


def gcda(*counts: Sequence[int], stamp: int = 7) -> bytes:
    """A kernel's file of gcc 12.2, with a function for each sequence of counters."""
    words = [int.from_bytes(b"B22*", "big"), stamp, 0]
    content = b"adcg" + struct.pack("<3I", *words)
    for ident, arcs in enumerate(counts, start=1):
        content += struct.pack("<7I", 0x01000000, 12, ident, 10 + ident, 20 + ident, 0x01A10000, 8 * len(arcs))
        content += struct.pack(f"<{len(arcs)}Q", *arcs)
    return content


def tar(files: Iterable[tuple[str, bytes]], *, odd: Sequence[tarfile.TarInfo] = ()) -> bytes:
    """An archive; `odd` entries come last."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in odd:
            archive.addfile(info)
        end = archive.offset + 2 * tarfile.BLOCKSIZE
    # Without the padding up to a tape's record, which kdyno-pgod doesn't write.
    return out.getvalue()[:end]


def snapshot(
    objects: Mapping[str, bytes], boot: str = BOOTS[0], *, odd: Sequence[tarfile.TarInfo] = (), **other: Any
) -> tuple[dict[str, Any], bytes]:
    """What the listing says of a run, and the file with its last snapshot; `other` is what the listing says instead."""
    about = {"boot": boot, "run": 1, "sequence": 3, "taken": 1_795_437_789, "milliseconds": 5, "kernel": KERNEL}
    about |= {key: value for key, value in other.items() if key in about}
    size = sum(map(len, objects.values()))
    described = {"v": 1, **about, "objects": len(objects), "bytes": size}
    content = compress(tar([("snapshot.json", json.dumps(described).encode()), *objects.items()], odd=odd), mtime=0)
    run = {**about, "snapshots": 2, "objects": len(objects), "counter_bytes": size}
    run |= {"file": f"{boot}/{about['run']:04}-000003.tar.gz", "file_bytes": len(content)} | other
    return run, content


def sent(*snapshots: tuple[dict[str, Any], bytes], **other: Any) -> bytes:
    """All that comes through ssh; `other` is what the listing says instead."""
    listing = {"v": 1, "version": "0.1.0", "directory": "/var/lib/kdyno-pgod", "running": True, "bytes": 0}
    listing |= {"runs": [run for run, _ in snapshots], "unreadable": []} | other
    files = [("listing.json", json.dumps(listing).encode()), *((run["file"], content) for run, content in snapshots)]
    return tar(files)


def install_ssh(folder: Path) -> Path:
    """Put the ssh above into a directory, which is then to be the first on the PATH; returns its log."""
    folder.mkdir(exist_ok=True)
    ssh = folder / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    return folder / "ssh.log"
