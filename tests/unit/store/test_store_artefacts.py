from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kdyno.store.artefacts import ArtefactDamaged, ArtefactMissing, Artefacts


@pytest.fixture
def console(tmp_path: Path) -> Path:
    path = tmp_path / "console"
    path.write_bytes(b"Kernel panic\r\n" * 1000)
    return path


def test_an_artefact_comes_back_by_the_hash_of_its_content(tmp_path: Path, console: Path) -> None:
    artefacts = Artefacts(tmp_path / "artefacts")
    sha256 = artefacts.put(console)
    assert sha256 == hashlib.sha256(console.read_bytes()).hexdigest()
    assert artefacts.get(sha256).read_bytes() == console.read_bytes()
    assert console.exists()


def test_the_same_content_is_kept_once_however_many_put_it(tmp_path: Path, console: Path) -> None:
    artefacts = Artefacts(tmp_path / "artefacts")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(artefacts.put, [console] * 40))) == 1
    assert len([path for path in artefacts.directory.rglob("*") if path.is_file()]) == 1


def test_a_damaged_artefact_is_never_handed_out_and_heals_when_put_again(tmp_path: Path, console: Path) -> None:
    artefacts = Artefacts(tmp_path / "artefacts")
    sha256 = artefacts.put(console)
    path = artefacts.get(sha256)
    path.chmod(0o644)
    path.write_bytes(b"bit rot")
    with pytest.raises(ArtefactDamaged, match="is damaged"):
        artefacts.get(sha256)
    assert artefacts.put(console) == sha256
    assert artefacts.get(sha256).read_bytes() == console.read_bytes()


@pytest.mark.parametrize("name", ["0" * 64, "", "../../etc/passwd", "/etc/passwd", "0" * 63 + "g"])
def test_a_name_that_is_no_artefact_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtefactMissing):
        Artefacts(tmp_path).get(name)
