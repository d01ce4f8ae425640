"""The mitigations of the running kernel, as words for the command line of another kernel.

The emulated CPU has other vulnerabilities than the host, so that the same kernel would choose other mitigations there.
The words are those of Documentation/admin-guide/kernel-parameters.txt; the texts of the host are those that
arch/x86/kernel/cpu/bugs.c writes to /sys/devices/system/cpu/vulnerabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kdyno.measure.cycles.kernel_measured import Mitigation, mitigation_name

VULNERABILITIES = Path("/sys/devices/system/cpu/vulnerabilities")
CMDLINE = Path("/proc/cmdline")
CODE_FOR_BUFFERS = "Clear CPU buffers"

NO_CODE = frozenset(
    {"gather_data_sampling", "ghostwrite", "itlb_multihit", "l1tf", "old_microcode", "srbds", "vmscape"}
)
"""Vulnerabilities without code in a kernel that runs no guests: microcode or different page tables mitigate them."""

PASSED_ON = frozenset(
    {
        "audit",
        "hardened_usercopy",
        "init_on_alloc",
        "init_on_free",
        "lsm",
        "preempt",
        "psi",
        "randomize_kstack_offset",
        "security",
        "slab_nomerge",
        "transparent_hugepage",
    }
)
"""Words of the running kernel's command line that change what system calls, faults and switches execute."""


def _on_or_off(word: str) -> Callable[[str], str]:
    return lambda done: f"{word}=" + ("on" if done else "off")


def _buffers(word: str) -> Callable[[str], str]:
    return lambda done: f"{word}=" + ("full" if CODE_FOR_BUFFERS in done else "off")


def _spectre_v1(done: str) -> str:
    return "" if done else "nospectre_v1"


def _spectre_v2(done: str) -> str:
    """Return the word against Spectre v2. No CPU of QEMU's TCG has IBRS, which costs only at privilege switches."""
    return "spectre_v2=retpoline" if "Retpoline" in done else "spectre_v2=off"


def _retbleed(done: str) -> str:
    if "untrained return thunk" in done:
        return "retbleed=unret"
    return "retbleed=stuff" if "Stuffing" in done else "retbleed=off"


def _its(done: str) -> str:
    """Return the word against ITS; `force`, because the emulated CPU isn't vulnerable."""
    return "indirect_target_selection=" + ("force" if done else "off")


def _srso(done: str) -> str:
    return "spec_rstack_overflow=" + ("safe-ret" if "Safe RET" in done or "safe RET" in done else "off")


WORDS: Mapping[str, Callable[[str], str]] = {
    "indirect_target_selection": _its,
    "mds": _buffers("mds"),
    "meltdown": _on_or_off("pti"),
    "mmio_stale_data": _buffers("mmio_stale_data"),
    "reg_file_data_sampling": _on_or_off("reg_file_data_sampling"),
    "retbleed": _retbleed,
    "spec_rstack_overflow": _srso,
    "spec_store_bypass": lambda done: "" if done else "spec_store_bypass_disable=off",
    "spectre_v1": _spectre_v1,
    "spectre_v2": _spectre_v2,
    "tsa": _on_or_off("tsa"),
    "tsx_async_abort": _buffers("tsx_async_abort"),
}
"""By vulnerability, a function from its mitigation ("" without one) to a word of the command line ("" for none)."""


def read_vulnerabilities(directory: Path = VULNERABILITIES) -> dict[str, str]:
    """Return the status of each vulnerability that the running kernel reports; empty without a report."""
    try:
        return {path.name: path.read_text(encoding="utf-8").strip() for path in sorted(directory.iterdir())}
    except OSError:
        return {}


def words_for(vulnerabilities: Mapping[str, str], cmdline: str) -> tuple[str, ...]:
    """Return the words that give another kernel the same mitigations, as far as words can. Pure.

    The status of Spectre v2 includes BHI. By default a kernel would clear the branch history in a loop.
    """
    words = [WORDS[name](mitigation_name(status)) for name, status in vulnerabilities.items() if name in WORDS]
    if vulnerabilities.get("spectre_v2") is not None:
        words.append("spectre_bhi=" + ("on" if "BHI: SW loop" in vulnerabilities["spectre_v2"] else "off"))
    passed_words = [word for word in cmdline.split() if word.partition("=")[0] in PASSED_ON]
    # The guest has one CPU, and would otherwise remove the lock prefixes from its code.
    return (*filter(None, words), *passed_words, "noreplace-smp")


def parse_listing(text: str) -> dict[str, str]:
    """Parse the output of `grep . /sys/devices/system/cpu/vulnerabilities/*`. Pure."""
    rows = (line.partition(":") for line in text.splitlines())
    return {path.rsplit("/", 1)[-1]: status.strip() for path, colon, status in rows if colon}


def compare_mitigations(host: Mapping[str, str], guest: Mapping[str, str]) -> tuple[Mitigation, ...]:
    """Return the mitigations in code of both kernels; `unknown` if one kernel doesn't know the vulnerability. Pure."""
    names = sorted((host.keys() | guest.keys()) - NO_CODE)
    return tuple(
        Mitigation(name=name, host=host.get(name, "unknown"), guest=guest.get(name, "unknown")) for name in names
    )
