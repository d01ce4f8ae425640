"""lines = true: line tables and inlined functions in vmlinux, for profiles and explanations. Code stays the same."""

from __future__ import annotations

from kdyno.kernel.knobs.base import Contribution, Knob, KnobContext

FLAGS = {
    "gcc": ("-g1", "-gdwarf-4", "-fno-var-tracking"),
    "clang": ("-gmlt", "-fdebug-info-for-profiling"),
}
"""The least that llvm-profgen and create_gcov can use. Without clang's second flag calls on one line merge; of the
DWARF 5 that gcc writes since version 11, AutoFDO 0.19 makes nothing. gcc's last one leaves out where variables lie,
which takes a sixth of its time, and which -g1 writes nothing of."""


def contribute(value: bool, context: KnobContext) -> Contribution:
    """Ask for line tables. bzImage carries none of them: the kernel's makefiles strip them there."""
    return Contribution(kcflags=FLAGS[context.toolchain.identity.family] if value else ())


KNOB = Knob("lines", contribute, in_matrix=True)
