"""`pgo`: the kernel is compiled with counters, trained, and compiled again by what they counted.

CFLAGS_GCOV of the kernel's makefiles goes to all code but what must not be instrumented, for which they say so; that
holds for clang's counters as well, so that they go the same way.
"""

from __future__ import annotations

from kdyno.base.errors import UserError
from kdyno.kernel import lkd
from kdyno.kernel.delegation.resolved import ProfileUse
from kdyno.kernel.inputs import DIRECTORY, Input
from kdyno.kernel.knobs.base import Contribution, KconfigRequest
from kdyno.kernel.toolchain import Toolchain

BY = 'profile, use = ["pgo"]'
CLANG_COUNTS = "CFLAGS_GCOV=-fprofile-generate -mllvm -disable-vp=true"
"""clang's counters without its runtime: profiles of values need one."""
CLANG_SECTIONS = "__llvm_prf_cnts __llvm_prf_data __llvm_prf_names"
"""The section of its counters. The linker by itself would put them into memory that the kernel frees after boot."""
NEEDED = {
    "gcc": ("DEBUG_FS", "GCOV_KERNEL", "GCOV_PROFILE_ALL"),
    "clang": ("DEBUG_FS", "GCOV_KERNEL", "GCOV_PROFILE_ALL", "PROC_KCORE"),
}
"""Kconfig symbols of the kernel that counts."""
GCC_WORDS = (
    "-fprofile-partial-training",  # what training didn't reach is compiled as without a profile, not for size
    "-fprofile-correction",  # counts that were taken amid functions, and rounded, don't add up
    "-fno-unroll-loops",  # these three come with -fprofile-use, and make code larger
    "-fno-peel-loops",
    "-fno-tracer",
    "-Wno-coverage-mismatch",  # a function that the counting kernel's configuration makes otherwise
    "-Wno-missing-profile",
)
CLANG_WORDS = ("-Wno-backend-plugin",)  # a function that the counting kernel's configuration makes otherwise

RELEASES = {"gcc": range(12, 17), "clang": range(19, 21)}
"""Those whose counters kdyno reads; see docs/instrumented.md."""


class NotCounting(UserError):
    message = 'use = ["pgo"] requires gcc 12 to 16 or clang 19 or 20, and {name} is version {version}'
    hint = "set `toolchain` to one of these releases in the same variant: kdyno reads the counters of no others"


def require(toolchain: Toolchain) -> None:
    """Raise NotCounting for a compiler whose counters can't be read."""
    identity = toolchain.identity
    if int(identity.version.split(".")[0]) not in RELEASES["clang" if toolchain.is_clang else "gcc"]:
        raise NotCounting(name=identity.name, version=identity.version)


def counting(toolchain: Toolchain) -> Contribution:
    """Return the contribution for the kernel that is booted for training."""
    family = "clang" if toolchain.is_clang else "gcc"
    return Contribution(
        asks=tuple(KconfigRequest(symbol=symbol, value="y", by=BY) for symbol in NEEDED[family]),
        make=(CLANG_COUNTS,) if toolchain.is_clang else (),
        environment={lkd.DATA: CLANG_SECTIONS} if toolchain.is_clang else {},
    )


def compiled_by(profile: Input, toolchain: Toolchain, thresholds: tuple[str, ...]) -> Contribution:
    """Return the contribution for the tuned kernel. `thresholds` are LLVM's words for hot and cold; gcc reads them in
    the profile.
    """
    words = tuple(word for threshold in thresholds for word in ("-mllvm", threshold))
    use = ProfileUse(
        name=profile.name,
        file=f"../{DIRECTORY}/{profile.file_name}",
        family="clang" if toolchain.is_clang else "gcc",
        cut="whole" if toolchain.is_clang else "objects",
        option="-fprofile-use=",
        add=(*CLANG_WORDS, *words) if toolchain.is_clang else GCC_WORDS,
    )
    fact = f"profile {profile.name} {profile.digest} {use.option} {' '.join(use.add)}"
    return Contribution(inputs=(profile,), profiles=(use,), facts=(fact,))
