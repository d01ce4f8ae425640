"""Parameters that keep a kernel from testing itself while it is measured."""

from __future__ import annotations

import pytest

from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.kconfig_check import read_config

DEBIAN_6_1 = "CONFIG_CRYPTO_MANAGER=y\n# CONFIG_CRYPTO_MANAGER_DISABLE_TESTS is not set\n"
DEBIAN_7_3 = "CONFIG_CRYPTO_MANAGER=y\nCONFIG_CRYPTO_SELFTESTS=y\n"


@pytest.mark.parametrize(
    ("config", "more"),
    [
        ("CONFIG_X86=y\n", ()),
        ("CONFIG_KUNIT=y\n", ("kunit.enable=0",)),
        ("CONFIG_KUNIT=m\n", ()),
        (DEBIAN_6_1, ("cryptomgr.notests=1",)),
        (DEBIAN_7_3, ("cryptomgr.notests=1",)),
        ("CONFIG_CRYPTO_MANAGER=y\nCONFIG_CRYPTO_MANAGER_DISABLE_TESTS=y\n", ()),
        ("CONFIG_CRYPTO_MANAGER=y\n# CONFIG_CRYPTO_SELFTESTS is not set\n", ()),
        ("# CONFIG_CRYPTO_MANAGER is not set\n", ()),
        (DEBIAN_7_3 + "CONFIG_KUNIT=y\n", ("kunit.enable=0", "cryptomgr.notests=1")),
    ],
)
def test_tests_that_a_configuration_has_are_turned_off(config: str, more: tuple[str, ...]) -> None:
    assert disable_boot_tests(("quiet",), read_config(config)) == ("quiet", *more)


def test_a_variants_own_word_counts() -> None:
    words = ("cryptomgr.notests=0", "kunit.enable=1")
    assert disable_boot_tests(words, read_config(DEBIAN_7_3 + "CONFIG_KUNIT=y\n")) == words
