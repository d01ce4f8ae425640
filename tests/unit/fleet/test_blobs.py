"""The blob store: a file is what its name says, or it is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kdyno.fleet.blobs import Blobs
from kdyno.fleet.errors import BlobDiffers, BlobMissing, BlobStoreFailed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def test_a_file_comes_back_as_it_was(tmp_path: Path, file: Path) -> None:
    blobs = Blobs(str(tmp_path / "blobs"))
    digest = blobs.put(file)
    assert digest == hashlib.sha256(b"content").hexdigest() == blobs.put(file)
    assert blobs.has(digest)
    blobs.get(digest, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
    assert [path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == [digest]


def test_a_file_that_does_not_match_its_name_is_refused(tmp_path: Path, file: Path) -> None:
    blobs = Blobs(f"file://{tmp_path}/blobs")
    digest = blobs.put(file)
    [kept] = tmp_path.glob(f"blobs/*/{digest}")
    kept.write_bytes(b"contenT")
    with pytest.raises(BlobDiffers, match=f"the blob {digest} in .* has another content") as refused:
        blobs.get(digest, tmp_path / "back")
    assert refused.value.exit_code == 3
    assert not (tmp_path / "back").exists()


def test_a_missing_file_and_a_store_out_of_reach_are_named(tmp_path: Path) -> None:
    with pytest.raises(BlobMissing, match="has no file 00"):
        Blobs(str(tmp_path)).get("0" * 64, tmp_path / "back")
    (tmp_path / "occupied").write_text("a file")
    for url in (f"{tmp_path}/occupied/blobs", "nothing-of-this-name://bucket"):
        with pytest.raises(BlobStoreFailed) as failed:
            Blobs(url).check()
        assert url in str(failed.value)
    Blobs(f"{tmp_path}/new").check()


def test_a_store_that_is_not_a_directory_works_alike(tmp_path: Path, file: Path) -> None:
    blobs = Blobs("memory://test-blobs")
    blobs.check()
    blobs.get(blobs.put(file), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
