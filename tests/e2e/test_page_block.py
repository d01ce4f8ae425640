"""Our own patch page-block on a real tree: it goes in, it builds, and faults map as many pages as was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.build import check_configuration
from kdyno.kernel.plan import plan_build
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource, fetch
from tests.e2e.conftest import Kdyno

TARBALL = Path("/usr/src/linux-source-6.1.tar.xz")
SIZES = {"4k": 0, "64k": 4, "2M": 9}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not TARBALL.exists(), reason="needs Debian's linux-source-6.1"),
]


@pytest.fixture(scope="session")
def source(state: Path) -> KernelSource:
    return fetch("debian:linux-source-6.1", State(state), print)


def test_the_patch_goes_into_linux_6_1_and_its_option_can_be_had(source: KernelSource, state: Path) -> None:
    recipe = Recipe(patches=("page-block",), page_size="64k")
    plan = plan_build(recipe, source, "dyno", State(state))
    assert recipe.words == ("transparent_hugepage=never", "page_block=4")
    assert (plan.tree / "mm/page_block.c").exists() and not (source.tree / "mm/page_block.c").exists()
    check_configuration(plan, State(state))


def test_a_kernel_with_the_patch_takes_fewer_faults_by_the_order_of_its_blocks(kdyno: Kdyno) -> None:
    variants = "".join(
        f'[variants.{size}]\npatches = ["page-block"]\nsource = "debian:linux-source-6.1"\npage_size = "{size}"\n'
        for size in SIZES
    )
    text = f"""
{variants}
[workload]
type = "command"
command = ["sh", "-ec", "kdyno-loads fault --bytes 32M --json; cat /sys/kernel/mm/page_block/order"]
[workload.metrics.faults]
pattern = '"name":"faults","value":([0-9.e+-]+)'
unit = "faults"
direction = "lower"
[machine]
lane = "model"
"""
    experiment = kdyno.experiment("blocks", text, baseline="4k", blocks=1)
    kdyno("run", experiment, "--quiet")
    rows = [line.split(",") for line in kdyno("report", "latest", "--csv").stdout.splitlines()]
    value, variant = (rows[0].index(column) for column in ("value", "variant"))
    faults = {row[variant]: float(row[value]) for row in rows[1:]}
    pages = (32 << 20) // 4096
    assert pages <= faults["4k"] < pages * 1.05
    assert pages >> 4 <= faults["64k"] < (pages >> 4) * 1.2
    assert pages >> 9 <= faults["2M"] < (pages >> 9) + 40
