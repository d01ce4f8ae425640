"""`kdyno fit-config` on the toy Kbuild: real configurations and builds; records of boots are made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.process import output
from kdyno.base.state import State
from kdyno.boot.base import Description
from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs.kconfig import read_fragment
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.measure.guest.job import Job
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.named import UnknownLoad, load_named
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.runs.one_boot import BootRequest
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost
from kdyno.store.records import Boot
from kdyno.tune.fit import bench
from tests.unit.coverage_specimen import Toy
from tests.unit.kernel_toy import built, toy_tree

OBJECTS = "objects := init/main.o fs/open.o lib/crc32.o "
MORE = (
    "$(if $(CONFIG_EXT4),fs/ext4.o) $(if $(CONFIG_PCI),pci/bus.o) $(if $(CONFIG_CARD),pci/card.o) "
    "$(if $(CONFIG_KEYS),pci/keys.o) $(if $(CONFIG_MAIL),pci/mail.o) "
)
OBJECTS_OF = {"PCI": "bus", "CARD": "card", "KEYS": "keys", "MAIL": "mail"}
SOURCES = {
    "fs/ext4.c": "int ext4_mount(void)\n{\n\treturn 4;\n}\n",
    "fs/Makefile": "obj-y := open.o\nobj-$(CONFIG_EXT4) += ext4.o\n",
    "net/Makefile": "obj-$(CONFIG_NET) += socket.o\n",
    "pci/bus.c": "int pci_probe(void)\n{\n\treturn 5;\n}\n",
    "pci/card.c": "int card_send(void)\n{\n\treturn 6;\n}\n",
    "pci/keys.c": "int key_put(void)\n{\n\treturn 7;\n}\n",
    "pci/mail.c": "int mail_send(void)\n{\n\treturn 8;\n}\n",
    "pci/Makefile": "".join(f"obj-$(CONFIG_{name}) += {file}.o\n" for name, file in OBJECTS_OF.items()),
}
CARD = 'config CARD\n\tbool "A card"\n\tdepends on PCI\n\n'
MAIL = 'config KEYS\n\tbool "Keys"\n\nconfig MAIL\n\tbool "Mail"\n\tselect KEYS\n\n'
FRAGMENT = "CONFIG_NET=y\nCONFIG_INET=y\nCONFIG_EXT4=y\nCONFIG_PCI=y\nCONFIG_CARD=y\n"
START = {"start_kernel": 1, "pci_probe": 2}
LOAD = {"start_kernel": 1, "pci_probe": 2, "sys_open": 70, "card_send": 9}


class Lab:
    """The command, with a toy to fit, and boots that are made up: what ran in them, and what they can't do without."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.tree = toy_tree(folder)
        makefile = self.tree / "Makefile"
        assert OBJECTS in makefile.read_text()
        makefile.write_text(makefile.read_text().replace(OBJECTS, OBJECTS + MORE))
        kconfig = self.tree / "Kconfig"
        kconfig.write_text(kconfig.read_text().replace('source "net/Kconfig"', f'{CARD}{MAIL}source "net/Kconfig"'))
        for name, text in SOURCES.items():
            (self.tree / name).parent.mkdir(exist_ok=True)
            (self.tree / name).write_text(text)
        (folder / "fat.config").write_text(FRAGMENT)
        self.load: Mapping[str, int] = LOAD
        self.fatal: dict[str, str] = {}
        """By symbol: how a boot with the load ends without it."""
        self.lost = False
        self.boots: list[tuple[str, int]] = []
        self.machine = SimpleNamespace(describe=self.describe, cpu=read_cpu)
        patch.setattr(bench, "open_equipped_machine", lambda *_: self.machine)
        patch.setattr(bench, "SingleBoots", lambda _: SimpleNamespace(for_files=self.boot_all))

    def describe(self) -> Description:
        return Description(lane="model", parallel=1, facts={}, host={}, icount_shift=5)

    def boot_all(
        self, _machine: object, wanted: list[BootRequest], _kind: str, _workload: object
    ) -> list[tuple[Path, Boot, list[Any]]]:
        return [self.boot(one) for one in wanted]

    def boot(self, wanted: BootRequest) -> tuple[Path, Boot, list[Any]]:
        assert wanted.image
        self.boots.append((wanted.name, wanted.seed))
        config = read_config(wanted.image.config.read_text())
        broken: dict[str, str] = {}
        if wanted.job.tests:
            for symbol, how in self.fatal.items():
                if config.get(symbol) != "y" and how.startswith("broken: "):
                    broken["lat_pipe"] = how.removeprefix("broken: ")
                elif config.get(symbol) != "y":
                    error = BootForFileLost if self.lost else BootForFileFailed
                    raise error(name=wanted.name, image="abc", reason=how, console="/c")
        lines = output(["nm", "-S", wanted.image.vmlinux]).splitlines()
        listed = [words for line in lines if len(words := line.split()) == 4 and words[2] == "T"]
        listing = sorted((int(start, 16), int(size, 16), name) for start, size, _, name in listed)
        toy = Toy(self.tree, wanted.image.vmlinux, {name: (start, size) for start, size, name in listing})
        ran = self.load if wanted.job.tests else START
        here = {name: count for name, count in ran.items() if name in toy.functions}
        path = toy.record(self.folder / f"{len(self.boots)}.kpmu", {}, here)
        boot = Boot(key="ab" * 32, seed=wanted.seed, status="ok", started=datetime.now(UTC), seconds=1.0, broken=broken)
        return path, boot, []

    def __call__(self, *words: str, status: int = 0) -> str:
        common = ("--config", "make:tinyconfig", "--state", str(self.folder / "s"), "-o", str(self.fragment))
        named = ("--source", str(self.tree), "--fragment", str(self.folder / "fat.config"))
        given = main(["fit-config", "lat_pipe", *named, *common, *words])
        printed = self.capsys.readouterr()
        assert given == status, printed.err
        return printed.err if status else printed.out

    @property
    def fragment(self) -> Path:
        return self.folder / "small.config"


@pytest.fixture(name="lab")
def lab_with_a_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    monkeypatch.delenv("KDYNO_STORE", raising=False)
    return Lab(tmp_path, monkeypatch, capsys)


def test_what_never_ran_is_off_and_what_the_load_needs_stays_with_what_it_depends_on(lab: Lab) -> None:
    fitted = json.loads(lab("--json", "--boots", "1"))
    jsonschema.Draft202012Validator(schema("fit-config")).validate(fitted)
    symbols = {symbol["name"]: (symbol["is_on"], symbol["why"], symbol["text"]) for symbol in fitted["symbols"]}
    assert symbols["EXT4"] == (False, "never", "none of its 3 lines of code ran")
    assert symbols["NET"] == (False, "never", "none of its 3 lines of code ran")
    assert symbols["INET"] == (False, "along", "it went with NET")
    assert symbols["CRC32"] == (False, "along", "it went with EXT4")
    assert symbols["CARD"] == (True, "load", "the load ran card_send() of pci/card.c")
    assert symbols["PCI"] == (True, "dependency", "CARD depends on it")
    assert fitted["after"]["symbols"] == fitted["before"]["symbols"] - 4
    assert fitted["after"]["text"] < fitted["before"]["text"]
    assert fitted["kernels"] == 1 and fitted["fragment"] == str(lab.fragment)
    assert [name for name, _ in lab.boots] == [
        "the start alone, seed 1",
        "the load, seed 1",
        "the kernel without 2 symbols, seed 1",
    ]


def test_the_fragment_makes_that_kernel_in_a_variant_and_has_a_reason_above_each_line(lab: Lab) -> None:
    fitted = json.loads(lab("--json"))
    text = lab.fragment.read_text()
    assert {request.symbol: request.value for request in read_fragment(lab.fragment)} == dict.fromkeys(
        ("CRC32", "EXT4", "INET", "NET"), "n"
    )
    assert "# none of its 3 lines of code ran\n# CONFIG_EXT4 is not set\n" in text
    assert "#   CARD: the load ran card_send() of pci/card.c\n" in text
    state = State(lab.folder / "s")
    fragments = (str(lab.folder / "fat.config"), str(lab.fragment))
    image = built(Recipe(lines=True, fragments=fragments), fetch(str(lab.tree), state, print), state)
    assert image.record.key == fitted["after"]["key"], "a variant with both fragments is that image"


def test_what_the_load_ran_stays_though_what_selected_it_goes(lab: Lab) -> None:
    (lab.folder / "fat.config").write_text(f"{FRAGMENT}CONFIG_MAIL=y\n")
    lab.load = {**LOAD, "key_put": 5}
    symbols = {symbol["name"]: symbol for symbol in json.loads(lab("--json"))["symbols"]}
    assert not symbols["MAIL"]["is_on"]
    assert symbols["KEYS"] | {"text": ""} == {"name": "KEYS", "is_on": True, "is_set": True, "why": "load", "text": ""}
    assert not any(symbol["is_set"] for name, symbol in symbols.items() if name != "KEYS")
    written = lab.fragment.read_text()
    assert "# CONFIG_MAIL is not set" in written
    assert "# the load ran key_put() of pci/keys.c; what selected it went\nCONFIG_KEYS=y\n" in written


def test_what_still_is_selected_is_not_set(lab: Lab) -> None:
    (lab.folder / "fat.config").write_text(f"{FRAGMENT}CONFIG_MAIL=y\n")
    lab.load = {**LOAD, "key_put": 5}
    lab.fatal = {"MAIL": "broken: nobody writes"}
    symbols = {symbol["name"]: symbol for symbol in json.loads(lab("--json"))["symbols"]}
    assert symbols["MAIL"]["why"] == "culprit"
    assert symbols["KEYS"]["is_on"]
    assert "CONFIG_KEYS=y" not in lab.fragment.read_text()


def test_what_only_the_start_ran_may_go_unless_a_kernel_without_it_fails(lab: Lab) -> None:
    lab.load = {name: count for name, count in LOAD.items() if name != "card_send"}
    went = {symbol["name"]: symbol for symbol in json.loads(lab("--json"))["symbols"]}
    assert went["PCI"]["why"] == "start" and not went["PCI"]["is_on"]
    assert went["PCI"]["text"] == "only the start of the kernel ran code of it, such as pci_probe() of pci/bus.c"
    lab.fatal = {"PCI": "kernel panic", "EXT4": "broken: no such file"}
    document = json.loads(lab("--json"))
    stayed = {symbol["name"]: symbol for symbol in document["symbols"]}
    assert (stayed["PCI"]["why"], stayed["PCI"]["text"]) == ("culprit", "without it: kernel panic")
    assert (stayed["EXT4"]["why"], stayed["EXT4"]["text"]) == ("culprit", "without it: lat_pipe: no such file")
    assert not stayed["NET"]["is_on"] and not stayed["CARD"]["is_on"]
    assert document["kernels"] > 3
    printed = lab("--top", "1")
    assert "PCI: without it: kernel panic" in printed and "and 1 more (--top N)" in printed


def test_a_kernel_that_was_lost_says_nothing_and_the_command_can_be_repeated(lab: Lab) -> None:
    lab.fatal, lab.lost = {"EXT4": "QEMU was killed by signal 9"}, True
    assert "was lost: QEMU was killed" in lab(status=3)
    assert not lab.fragment.exists()
    lab.fatal = {}
    lab("-q")
    assert lab.fragment.exists()


def test_where_no_kernel_without_something_will_do_nothing_is_written(lab: Lab) -> None:
    lab.fatal = {"EXT4": "kernel panic", "NET": "kernel panic"}
    assert "won't do: kernel panic" in lab(status=2)
    assert not lab.fragment.exists()
    assert "no kernel" not in lab("--kernels", "1", status=2)


def test_a_symbol_that_somebody_wants_stays(lab: Lab) -> None:
    symbols = {symbol["name"]: symbol for symbol in json.loads(lab("--json", "--keep", "CONFIG_EXT*"))["symbols"]}
    assert (symbols["EXT4"]["is_on"], symbols["EXT4"]["why"], symbols["EXT4"]["text"]) == (
        True,
        "asked",
        "--keep CONFIG_EXT*",
    )
    assert symbols["CRC32"]["is_on"] and not symbols["NET"]["is_on"]


def test_bad_input_is_one_message_each(lab: Lab) -> None:
    assert "--keep EXT5 matches no symbol" in lab("--keep", "EXT5", status=1)
    assert "did you mean EXT4?" in lab("--keep", "EXT5", status=1)
    assert "can't read the Kconfig fragment" in lab("--fragment", "none.config", status=1)
    assert "its directory does not exist" in lab("-o", str(lab.folder / "no" / "file"), status=1)
    wanted = ["NET", "INET", "EXT4", "PCI", "CARD"]
    assert "nothing of make:tinyconfig can be left out" in lab(*(f"--keep={name}" for name in wanted), status=1)
    lab.fatal = {"NO_SUCH": "kernel panic"}
    assert "does not pass lat_pipe: the boot of the load, seed 1 failed: kernel panic" in lab(status=1)
    lab.fatal = {"NO_SUCH": "broken: no such file"}
    assert "does not pass lat_pipe: lat_pipe: no such file" in lab(status=1)
    with pytest.raises(SystemExit):
        lab("--toolchain", "tcc")
    (lab.tree / "Kconfig").unlink()
    assert lab(status=1)


def test_loads_are_tests_workloads_or_files_and_others_are_refused_with_what_was_meant(tmp_path: Path) -> None:
    assert load_named(["lmbench"]) == LmbenchWorkload(tests=("lmbench",))
    both = load_named(["hackbench", "lat_pipe"])
    assert isinstance(both, ProgramsWorkload) and (both.use, both.tests) == (("hackbench",), ("lat_pipe",))
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\ndescription = "x"\ncommand = "true"\n[metrics]\nt = { time = "elapsed" }\n')
    assert [workload.name for workload in load_named([str(mine)]).definitions] == ["mine"]  # type: ignore[attr-defined]
    with pytest.raises(UnknownLoad, match="rediss is neither a workload nor a test") as refused:
        load_named(["rediss"])
    assert "did you mean redis?" in str(refused.value.advice)


def test_a_job_without_anything_to_do_is_the_start_alone() -> None:
    job: Job = Description(lane="model", parallel=1, facts={}, host={}).job(1)
    assert (job.tests, job.programs) == ((), ())
