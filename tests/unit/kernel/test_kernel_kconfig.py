"""Kconfig: bases, the reader of Kconfig files, and why a symbol didn't get its value."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from kdyno.kernel import kconfig, kconfig_check
from kdyno.kernel.kconfig import fragment, resolve_base
from kdyno.kernel.kconfig_check import ConfigRefused, explain, is_met, read_config, refuse_unknown
from kdyno.kernel.kconfig_expr import parse, tokens
from kdyno.kernel.kconfig_tree import KconfigTree, read_tree, statements
from kdyno.kernel.knobs import KconfigRequest
from kdyno.kernel.knobs.origin import located_config
from tests.unit.kernel_toy import FAKELINUX

NR_CPUS = (FAKELINUX / "Kconfig").read_text(encoding="utf-8").splitlines().index("config NR_CPUS") + 1
"""The line where the toy's tree asks for it."""


def request(symbol: str, value: str = "y") -> KconfigRequest:
    return KconfigRequest(symbol=symbol, value=value, by="a test")


@pytest.fixture(scope="module")
def tree() -> KconfigTree:
    return read_tree(FAKELINUX)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Y", 2),
        ("M", 1),
        ("NO", 0),
        ("y", 2),
        ("!M", 1),
        ("Y && M", 1),
        ("NO || M", 1),
        ("Y && (NO || !NO)", 2),
        ("NO && NO || Y", 2),
        ("Y = y", 2),
        ("M != y && Y", 2),
        ('TEXT = "a b"', 2),
        ("NUMBER >= 90", 2),
        ("NUMBER < 90", 0),
        ("UNKNOWN", 0),
        ("$(cc-option,-mfoo(a))", 2),
        ("$(success,test a) && NO", 0),
    ],
)
def test_expressions_are_evaluated_as_kconfig_does(text: str, level: int) -> None:
    config = {"Y": "y", "M": "m", "NO": "n", "TEXT": '"a b"', "NUMBER": "100"}
    assert parse(text).level(config) == level


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("PCI && NET", ["PCI (PCI is n)"]),
        ("PCI || USB", ["PCI (PCI is n) or USB (USB is n)"]),
        ("!NET", ["!NET (NET is y)"]),
        ("!(NET || PCI)", ["!NET (NET is y)"]),
        ("!(NET && SMP)", ["!NET (NET is y) or !SMP (SMP is y)"]),
        ("NET && (PCI || !SMP) && USB", ["PCI (PCI is n) or !SMP (SMP is y)", "USB (USB is n)"]),
        ("NET = m", ["NET=m (NET is y)"]),
        ("!(NET = y)", ["NET!=y (NET is y)"]),
    ],
)
def test_only_the_guilty_leaves_are_blamed(text: str, blamed: list[str]) -> None:
    assert parse(text).blame({"NET": "y", "SMP": "y"}, wanted=True) == blamed


@pytest.mark.parametrize("text", ["A &&", "(A", "A B", ""])
def test_a_broken_expression_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="Kconfig expression"):
        parse(text)


def test_a_macro_with_parentheses_is_one_token() -> None:
    assert tokens("A && $(as-instr,a (b),$(x)) || !B") == ["A", "&&", "$(as-instr,a (b),$(x))", "||", "!", "B"]


def test_statements_are_joined_and_freed_of_comments_and_help() -> None:
    text = 'config A\n\tbool "a # b"  # c\n\tdepends on B && \\\n\t  C\n\thelp\n\t  config NOT\n\n\t    y\n\nconfig D\n'
    assert list(statements(text)) == [
        (1, "config A"),
        (2, 'bool "a # b"'),
        (3, "depends on B && C"),
        (10, "config D"),
    ]


def test_entries_inherit_what_surrounds_them_across_files(tree: KconfigTree) -> None:
    entry = tree.entries["VIRTIO_NET"][0]
    assert entry.depends == ["NET", "PCI && INET"]
    assert entry.place == "net/Kconfig:9"
    assert tree.entries["FAKE_BREAK"][0].depends == ["!SMP || PCI || 64BIT"]


def test_a_name_in_a_help_text_is_no_symbol(tree: KconfigTree) -> None:
    assert "IN_A_HELP_TEXT" not in tree.entries


def test_prompts_and_selects_are_known(tree: KconfigTree) -> None:
    assert tree.entries["NR_CPUS"][0].prompts == ["SMP"]
    assert tree.entries["EXT4"][0].prompts == ["y"]
    assert tree.entries["64BIT"][0].prompts == []
    assert tree.selects["CRC32"] == [("EXT4", "y")]


@pytest.mark.parametrize(
    ("asked", "config", "why"),
    [
        (request("VIRTIO_NET"), {"NET": "y", "INET": "y"}, "unmet dependency: PCI (PCI is n) (net/Kconfig:9)"),
        (request("EXT5"), {}, "this source has no such symbol; did you mean EXT4?"),
        (request("QQQ"), {}, "this source has no such symbol"),
        (request("64BIT", "n"), {}, "it has no prompt (Kconfig:3), so it can't be set directly"),
        (request("CRC32", "n"), {"EXT4": "y"}, "it is selected by EXT4"),
        (request("NR_CPUS", "8"), {}, f"unmet dependency: SMP (SMP is n) (Kconfig:{NR_CPUS})"),
        (
            request("LTO_CLANG_THIN"),
            {},
            "unmet dependency: HAS_LTO_CLANG (HAS_LTO_CLANG is n)"
            " for want of CC_IS_CLANG (CC_IS_CLANG is n) (Kconfig:41)",
        ),
        (
            request("CC_OPTIMIZE_FOR_SIZE"),
            {"CC_OPTIMIZE_FOR_PERFORMANCE": "y"},
            "its choice has one member that is set, and that is CC_OPTIMIZE_FOR_PERFORMANCE",
        ),
        (request("LTO_NONE", "n"), {"LTO_NONE": "y"}, "one of its choice must be set: LTO_NONE, LTO_CLANG_THIN"),
        (request("NET", "m"), {"NET": "y"}, "it can't be a module here"),
        (
            request("NR_CPUS", "0"),
            {"SMP": "y"},
            "its dependencies are met, but Kconfig doesn't take this value; "
            f"see its type and range at Kconfig:{NR_CPUS}",
        ),
    ],
)
def test_an_unmet_ask_is_explained(tree: KconfigTree, asked: KconfigRequest, config: dict[str, str], why: str) -> None:
    assert explain(asked, config, tree) == why


def test_a_config_is_read_with_what_is_not_set() -> None:
    text = '# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C="x y"\nCONFIG_D=0x10\n# a comment\n'
    assert read_config(text) == {"A": "n", "B": "y", "C": '"x y"', "D": "0x10"}


def test_numbers_are_compared_as_numbers_and_absence_is_n() -> None:
    assert is_met(request("A", "16"), {"A": "0x10"})
    assert is_met(request("A", "n"), {})
    assert is_met(request("A", '""'), {})
    assert not is_met(request("A", "m"), {"A": "y"})


def test_all_that_was_refused_is_named_at_once() -> None:
    failures = kconfig_check.unmet(
        [request("VIRTIO_NET"), request("SMP"), request("NET", "n")], {"SMP": "y", "NET": "y"}, FAKELINUX
    )
    with pytest.raises(kconfig_check.ConfigRefused) as raised:
        kconfig_check.refuse(failures)
    message = str(raised.value)
    assert "didn't accept 2 of the requests" in message
    assert "CONFIG_VIRTIO_NET=y (asked by a test) is not there: unmet dependency" in message
    assert "CONFIG_NET=n (asked by a test) is y" in message


def test_a_fragment_names_who_asked() -> None:
    assert fragment([request("A"), request("B", "n")]) == (
        "# asked by a test\nCONFIG_A=y\n# asked by a test\n# CONFIG_B is not set\n"
    )


def test_dyno_is_a_fragment_that_comes_with_kdyno() -> None:
    base = resolve_base("dyno")
    assert base.kind == "fragment"
    assert "CONFIG_SMP=y" in base.text


def test_a_file_is_a_whole_config_even_compressed(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("CONFIG_A=y\n")
    (tmp_path / "config.gz").write_bytes(gzip.compress(b"CONFIG_A=y\n", mtime=0))
    for name in ("config", "config.gz"):
        base = resolve_base(f"file:{tmp_path / name}")
        assert (base.kind, base.text) == ("config", "CONFIG_A=y\n")


def test_a_local_base_holds_what_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "lsmod").write_text("ext4 1 0\n")
    (tmp_path / "config").write_text("CONFIG_EXT4=y\n")
    base = resolve_base(f"make:localmodconfig?lsmod={tmp_path}/lsmod&config={tmp_path}/config")
    assert (base.target, base.lsmod, base.text) == ("localmodconfig", "ext4 1 0\n", "CONFIG_EXT4=y\n")


def test_running_is_the_configuration_of_this_hosts_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kconfig, "RUNNING_CONFIGS", (f"{tmp_path}/{{release}}",))
    with pytest.raises(kconfig.BaseMissing, match="doesn't tell its kernel's configuration"):
        resolve_base("running")
    (tmp_path / os.uname().release).write_text("CONFIG_A=y\n")
    base = resolve_base("running")
    assert (base.kind, base.text) == ("config", "CONFIG_A=y\n")


def test_all_files_of_a_base_are_found_from_the_experiments_directory(tmp_path: Path) -> None:
    located = located_config("make:localmodconfig?lsmod=the+modules&config=sub/100%.config", tmp_path)
    assert located == f"make:localmodconfig?lsmod={tmp_path}/the+modules&config={tmp_path}/sub/100%.config"
    (tmp_path / "the+modules").write_text("ext4 1 0\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/100%.config").write_text("CONFIG_EXT4=y\n")
    assert resolve_base(located).text == "CONFIG_EXT4=y\n"
    for unchanged in ("dyno", "make:defconfig", "make:localmodconfig", "running", None):
        assert located_config(unchanged, tmp_path) == unchanged


@pytest.mark.parametrize(
    "spec", ["nothing", "../dyno", "make:", "make:tiny config", "make:defconfig?lsmod=x", "file:", "x:y", "make:all"]
)
def test_what_names_no_base_is_said(spec: str) -> None:
    with pytest.raises(kconfig.UnknownBase):
        resolve_base(spec)


def test_missing_files_and_questions_are_said() -> None:
    with pytest.raises(kconfig.BaseMissing, match="No such file"):
        resolve_base("file:/nowhere/config")
    with pytest.raises(kconfig.BaseIsInteractive):
        resolve_base("make:menuconfig")


@pytest.mark.parametrize("content", [b"", b"CONFIG_\n", b"Module Size Used by\next4 1 0\n", bytes(range(256))])
def test_a_file_that_is_not_a_configuration_is_refused_before_a_kernel_without_any_option_is_built(
    content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    with pytest.raises(kconfig.BaseEmpty, match="has no line as in a"):
        resolve_base(f"file:{file}")
    with pytest.raises(kconfig.BaseEmpty, match="has no line as in a"):
        resolve_base(f"make:localmodconfig?lsmod={file}&config={file}")


def test_a_configuration_may_set_nothing(tmp_path: Path) -> None:
    file = tmp_path / "off.config"
    file.write_text("# a comment\n# CONFIG_EXT4 is not set\n")
    assert resolve_base(f"file:{file}").kind == "config"


CHOICE = """
choice
	prompt "Preemption"
config NONE
	bool "none"
config FULL
	bool "full"
endchoice

config DRIVER
	tristate "a driver"

config CPUS
	int "number"

config BASE
	hex "address"

config NAME
	string "name"

config DERIVED
	def_bool y
"""


def refused_in_plan(tmp_path: Path, **values: str) -> str:
    """Return the message that a plan with these requests is refused with; empty if it isn't."""
    (tmp_path / "Kconfig").write_text(CHOICE)
    try:
        refuse_unknown(
            [KconfigRequest(symbol=name, value=text, by="kconfig") for name, text in values.items()], tmp_path
        )
    except ConfigRefused as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"FULL": "m"}, "CONFIG_FULL=m (asked by kconfig) is not possible: it is of type bool: expected y or n"),
        ({"FULL": '"=y"'}, "it is of type bool: expected y or n"),
        ({"DERIVED": "m"}, "it is of type bool: expected y or n"),
        ({"DRIVER": "1"}, "it is of type tristate: expected y, m or n"),
        ({"CPUS": "y"}, "it is of type int: expected a whole number"),
        ({"BASE": "y"}, "it is of type hex: expected a number such as 0x1000"),
        ({"NONE": "y", "FULL": "y"}, "NONE is requested as well, and only one member of their choice can be set"),
        ({"full": "y"}, "this source has no such symbol; did you mean FULL?"),
    ],
)
def test_a_value_that_no_configuration_can_hold_is_refused_before_a_build(
    tmp_path: Path, values: dict[str, str], why: str
) -> None:
    assert why in refused_in_plan(tmp_path, **values)


@pytest.mark.parametrize(
    "values",
    [
        {"FULL": "y", "NONE": "n"},
        {"DRIVER": "m", "CPUS": "64", "BASE": "0x1000", "NAME": '"m"'},
        {"NAME": "5", "CPUS": "n"},
    ],
)
def test_a_value_that_a_symbol_may_have_is_planned(tmp_path: Path, values: dict[str, str]) -> None:
    assert refused_in_plan(tmp_path, **values) == ""
