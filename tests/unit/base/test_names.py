"""Text files are UTF-8 in every locale, and names that are no text are said to be so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kdyno
from kdyno.base.names import AS_IT_IS, NameUnfit, printable, require_text
from kdyno.runs.experiment.resolve import load_experiment

LATIN1 = "caf\udce9"
"""What Python makes of the bytes `caf\\xe9`."""
PACKAGE = Path(kdyno.__file__).parent
TEXT_FILES = {"read_text", "write_text", "open", "fdopen", "NamedTemporaryFile"}


def opened_in_any_encoding(source: str) -> list[int]:
    """Lines that open, read or write a text file, and leave the encoding to the locale."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _opens_text(call) and all(key.arg != "encoding" for key in call.keywords)]


def _opens_text(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [word.value for word in call.args if isinstance(word, ast.Constant) and "b" in str(word.value)]
    binary = bool(modes) or ast.unparse(call.func) == "os.open" or (name == "NamedTemporaryFile" and not call.args)
    return name in TEXT_FILES and not binary


def test_every_text_file_is_opened_as_utf_8() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert sources
    lines = {str(path.relative_to(PACKAGE)): opened_in_any_encoding(text) for path, text in sources.items()}
    assert {path: numbers for path, numbers in lines.items() if numbers} == {}


def test_what_leaves_the_encoding_to_the_locale_is_seen() -> None:
    flagged = (
        "p.read_text()",
        "p.write_text(t)",
        "open(p)",
        "p.open('w')",
        "os.fdopen(h, 'w')",
        "NamedTemporaryFile('w')",
    )
    unseen = (
        "p.read_text(encoding='utf-8')",
        "p.open('rb')",
        "os.open(p, 0)",
        "NamedTemporaryFile()",
        "p.read_bytes()",
    )
    assert [opened_in_any_encoding(call) for call in (*flagged, *unseen)] == [[1]] * len(flagged) + [[]] * len(unseen)


def test_a_name_is_shown_as_text_whatever_it_is() -> None:
    assert printable("plain ü") == "plain ü"
    assert printable(LATIN1) == "caf\\xe9"
    assert printable("l\udcc3\udcb6 ü") == "lö ü", "UTF-8 that was read under another locale, beside text"
    assert printable("half \ud800") == "half \\ud800"


def test_names_are_written_as_the_file_system_has_them() -> None:
    assert f"{LATIN1}, half \ud800, ü".encode(errors=AS_IT_IS) == b"caf\xe9, half \\ud800, \xc3\xbc"


def test_a_name_that_is_no_text_is_refused() -> None:
    require_text("plain ü")
    with pytest.raises(NameUnfit, match=r"the file name caf\\xe9 is not valid utf-8"):
        require_text(LATIN1)


def test_an_experiment_in_a_directory_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / LATIN1
    folder.mkdir()
    (folder / "x.toml").write_text('name = "x"\nsource = "linux"\nbaseline = "a"\n[variants.a]\n')
    with pytest.raises(NameUnfit, match="linux is not valid utf-8"):
        load_experiment(folder / "x.toml")
    installed = folder / "x.toml"
    installed.write_text(installed.read_text().replace('"linux"', '"debian:linux-source-6.12"'))
    assert load_experiment(installed).baseline == "a", "nothing of the name goes on record"
