"""A configuration fitted to a load on real kernels: smaller, passes, and the second time nothing is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.kernel.knobs.kconfig import read_fragment
from tests.e2e.conftest import Kdyno

pytestmark = pytest.mark.long

FRAGMENT = "CONFIG_BLOCK=y\nCONFIG_BLK_DEV=y\nCONFIG_BLK_DEV_RAM=y\nCONFIG_EXT4_FS=y\nCONFIG_TIMERFD=y\n"


def test_what_a_load_does_not_use_goes_and_what_it_ran_stays(kdyno: Kdyno, tmp_path: Path) -> None:
    fat, small = tmp_path / "fat.config", tmp_path / "small.config"
    fat.write_text(FRAGMENT)
    words = ("fit-config", "lat_pipe", "lat_unix", "--fragment", str(fat), "-o", str(small), "--boots", "1", "--json")
    fitted = json.loads(kdyno(*words).stdout)
    symbols = {symbol["name"]: symbol for symbol in fitted["symbols"]}
    assert not symbols["TIMERFD"]["is_on"]
    # Only ext4 selects BUFFER_HEAD here, which has no prompt: it can't go where the load ran code of fs/buffer.c.
    assert symbols["EXT4_FS"]["is_on"] == (symbols["BUFFER_HEAD"]["why"] == "load")
    assert symbols["UNIX"]["is_on"] and symbols["UNIX"]["why"] == "load"
    assert symbols["MITIGATION_RETPOLINE"]["is_on"] and symbols["STACKPROTECTOR"]["is_on"]
    assert fitted["after"]["bzimage"] < fitted["before"]["bzimage"]
    off = {request.symbol for request in read_fragment(small)}
    assert off == {name for name, symbol in symbols.items() if not symbol["is_on"]}
    again = kdyno(*words)
    assert json.loads(again.stdout) == fitted
    assert "booting" not in again.stderr and "building" not in again.stderr
