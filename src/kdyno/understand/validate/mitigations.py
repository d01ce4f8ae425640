"""What the running kernel does about its CPU's faults, as words for the command line of another kernel.

The emulated CPU has other faults than the host's, so that the same kernel would choose otherwise there. The words are
those of Documentation/admin-guide/kernel-parameters.txt; the texts of the host are those that
arch/x86/kernel/cpu/bugs.c writes to /sys/devices/system/cpu/vulnerabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kdyno.measure.cycles.kernel_measured import Mitigation, what_is_done

VULNERABILITIES = Path("/sys/devices/system/cpu/vulnerabilities")
CMDLINE = Path("/proc/cmdline")
CODE_FOR_BUFFERS = "Clear CPU buffers"

NO_CODE = frozenset(
    {"gather_data_sampling", "ghostwrite", "itlb_multihit", "l1tf", "old_microcode", "srbds", "vmscape"}
)
"""These add no code to a kernel that runs no guests: microcode does the work, or page tables that are built otherwise.
"""

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
    """No CPU of QEMU's TCG has IBRS, whose bits cost at switches of privilege alone, and enhanced IBRS nothing."""
    return "spectre_v2=retpoline" if "Retpoline" in done else "spectre_v2=off"


def _retbleed(done: str) -> str:
    if "untrained return thunk" in done:
        return "retbleed=unret"
    return "retbleed=stuff" if "Stuffing" in done else "retbleed=off"


def _its(done: str) -> str:
    """`force`: the emulated CPU doesn't have the fault."""
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
"""By fault: from what is done about it (nothing: "") to a word of the command line (none: "")."""


def read_vulnerabilities(directory: Path = VULNERABILITIES) -> dict[str, str]:
    """Every fault that the running kernel knows, and what it says of it; empty if it says nothing."""
    try:
        return {path.name: path.read_text(encoding="utf-8").strip() for path in sorted(directory.iterdir())}
    except OSError:
        return {}


def words_for(vulnerabilities: Mapping[str, str], cmdline: str) -> tuple[str, ...]:
    """What makes another kernel do the same, as far as words can. Pure.

    BHI is a part of what is said of Spectre v2; a kernel on its own would clear the branch history in a loop.
    """
    words = [WORDS[name](what_is_done(status)) for name, status in vulnerabilities.items() if name in WORDS]
    if vulnerabilities.get("spectre_v2") is not None:
        words.append("spectre_bhi=" + ("on" if "BHI: SW loop" in vulnerabilities["spectre_v2"] else "off"))
    own = [word for word in cmdline.split() if word.partition("=")[0] in PASSED_ON]
    # The guest has one CPU, and would otherwise take the lock prefixes out of its code.
    return (*filter(None, words), *own, "noreplace-smp")


def parse_listing(text: str) -> dict[str, str]:
    """What `grep . /sys/devices/system/cpu/vulnerabilities/*` says. Pure."""
    rows = (line.partition(":") for line in text.splitlines())
    return {path.rsplit("/", 1)[-1]: status.strip() for path, colon, status in rows if colon}


def compared(host: Mapping[str, str], guest: Mapping[str, str]) -> tuple[Mitigation, ...]:
    """Faults whose mitigation is code of the kernel, here and there; one that the older kernel doesn't know is
    `unknown`. Pure."""
    names = sorted((host.keys() | guest.keys()) - NO_CODE)
    return tuple(
        Mitigation(name=name, host=host.get(name, "unknown"), guest=guest.get(name, "unknown")) for name in names
    )
