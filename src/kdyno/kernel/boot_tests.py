"""Kernel parameters that keep a kernel from testing itself: its tests run on after the start, in threads of their own,
and their work would be counted with a benchmark's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KUNIT = "kunit.enable="
"""lib/kunit/test.c, from 6.1 on."""
CIPHERS = "cryptomgr.notests="
"""crypto/testmgr.c. In Debian's Linux 7.3 these tests take more than a minute of a guest's time."""


def has_cipher_tests(config: Mapping[str, str]) -> bool:
    """Return whether the kernel tests its ciphers when it starts. Linux 6.12 has a symbol that says no, 7.2 one that
    says yes.
    """
    is_without = config.get("CRYPTO_MANAGER_DISABLE_TESTS", "y") == "y"
    return config.get("CRYPTO_SELFTESTS") == "y" or (config.get("CRYPTO_MANAGER", "n") != "n" and not is_without)


def disable_boot_tests(words: Sequence[str], config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words of a command line, and those that turn off the tests of a kernel with this configuration, unless
    the words say something of them. Pure.
    """
    more = [f"{KUNIT}0"] if config.get("KUNIT") == "y" else []
    more += [f"{CIPHERS}1"] if has_cipher_tests(config) else []
    return (*words, *(word for word in more if not any(own.startswith(word[:-1]) for own in words)))
