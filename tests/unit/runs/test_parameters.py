"""Kernel parameters that a kernel doesn't have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.kernel.recipe import Recipe
from kdyno.runs.parameters import parameter_notices, unknown_parameters

TEXTS = b"\x7fELF\0mitigations\0console=\0no_timer_check\0nospectre_v2\0kunit.enable\0"


@pytest.fixture
def vmlinux(tmp_path: Path) -> Path:
    path = tmp_path / "vmlinux"
    path.write_bytes(TEXTS)
    return path


@pytest.mark.parametrize(
    "word", ["mitigations=off", "console=ttyS0", "no-timer-check", "spectre_v2=off", "nokaslr", "any.thing=1"]
)
def test_parameters_that_a_kernel_has_or_may_have_are_known(vmlinux: Path, word: str) -> None:
    assert unknown_parameters([word], vmlinux) == []


def test_a_misspelt_parameter_and_one_of_another_configuration_are_unknown(vmlinux: Path) -> None:
    words = ["mitigatons=off", "mitigations=off", "transparent_hugepage=never", "mitigation", "--", "for_init"]
    assert unknown_parameters(words, vmlinux) == ["mitigatons", "transparent_hugepage", "mitigation"]


def test_variants_whose_kernels_lack_a_parameter_are_named(vmlinux: Path) -> None:
    variants = {
        "plain": Recipe(),
        "off": Recipe(cmdline=("mitigatons=off",)),
        "ok": Recipe(cmdline=("mitigations=off",)),
    }
    prepared = cast("Any", SimpleNamespace(experiment=SimpleNamespace(variants=variants)))
    images = cast("Any", dict.fromkeys(variants, (SimpleNamespace(directory=vmlinux.parent),)))
    [notice] = parameter_notices(prepared, images)
    assert "the kernel of off" in notice and notice.endswith("mitigatons")
