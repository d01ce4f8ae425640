//! GCC's options that clang doesn't know, refuses or means otherwise. Sources: the manuals of GCC 12 and clang 19, what
//! clang 19 says when it is given them, and how Linux 6.12's makefiles call each compiler.

use super::{Row, drop, drop_all, replace, respell};

/// Clang doesn't have the optimisation, so there is nothing to turn on or off.
const NONE_SUCH: &str = "clang has no such optimisation";
const LLVM: &str = "an option of LLVM, not of clang";
const NO_DEBUG: &str = "clang has no such setting of debugging information";

/// scripts/Makefile.extrawarn turns these warnings off for clang; the first lets GCC's own warnings pass.
pub const ADDITIONAL: &[&str] = &[
    "-Wno-unknown-warning-option",
    "-Wno-gnu",
    "-Wno-format-overflow-non-kprintf",
    "-Wno-format-truncation-non-kprintf",
    "-Wno-default-const-init-unsafe",
    "-Wno-pointer-to-enum-cast",
    "-Wno-tautological-constant-out-of-range-compare",
    "-Wno-unaligned-access",
    "-Wno-enum-compare-conditional",
    "-Wno-enum-enum-conversion",
];

pub const ROWS: &[Row] = &[
    // arch/x86/Makefile: the two spell the alignment of the stack differently, as an exponent and in bytes.
    replace("-mpreferred-stack-boundary=3", &["-mstack-alignment=8"], "clang counts in bytes"),
    replace("-mpreferred-stack-boundary=4", &["-mstack-alignment=16"], "clang counts in bytes"),
    // arch/x86/Makefile, RETPOLINE_CFLAGS: both call __x86_indirect_thunk_<register>.
    replace("-mindirect-branch=thunk-extern", &["-mretpoline-external-thunk"], "clang's word for retpolines"),
    // arch/x86/Makefile, RETPOLINE_VDSO_CFLAGS.
    replace(
        "-mindirect-branch=thunk-inline",
        &["-mretpoline"],
        "clang's word for retpolines without the kernel's thunks",
    ),
    drop("-mindirect-branch-register", "clang's retpolines always go through a register"),
    drop("-maccumulate-outgoing-args", "clang decides for itself how arguments get on the stack"),
    drop("-mhard-float", "clang has no other for x86-64; -msse and -msse2 beside it say what may be used"),
    replace("-Wimplicit-fallthrough=5", &["-Wimplicit-fallthrough"], "clang has no levels"),
    drop("-fno-allow-store-data-races", "clang never makes a store of its own that another thread may see"),
    drop("-fconserve-stack", NONE_SUCH),
    drop("-fno-conserve-stack", NONE_SUCH),
    drop("-fno-stack-limit", "clang has no limit of the stack"),
    drop_all("-falign-jumps=", "1", NONE_SUCH),
    drop_all("-falign-labels=", "1", NONE_SUCH),
    respell("-fmin-function-alignment=", "16", &["-falign-functions="], "clang's aligns cold functions too"),
    drop("-fno-code-hoisting", NONE_SUCH),
    drop("-fsched-pressure", NONE_SUCH),
    drop("-fno-gcse", NONE_SUCH),
    drop("-fno-reorder-blocks", NONE_SUCH),
    drop("-fno-partial-inlining", NONE_SUCH),
    drop("-fno-ipa-cp-clone", NONE_SUCH),
    drop("-fno-ipa-sra", NONE_SUCH),
    drop("-fno-ipa-icf", NONE_SUCH),
    drop("-fno-ipa-ra", NONE_SUCH),
    drop("-fno-inline-functions-called-once", NONE_SUCH),
    drop("-fno-inline-small-functions", NONE_SUCH),
    drop_all("-finline-limit=", "600", NONE_SUCH),
    drop("-fno-tree-loop-im", NONE_SUCH),
    drop("-fno-tree-sra", NONE_SUCH),
    drop("-fno-tree-scev-cprop", NONE_SUCH),
    drop("-fno-tree-switch-conversion", NONE_SUCH),
    drop("-fno-split-loops", NONE_SUCH),
    drop("-fno-branch-count-reg", NONE_SUCH),
    drop("-fno-isolate-erroneous-paths-dereference", NONE_SUCH),
    drop("-fno-section-anchors", NONE_SUCH),
    drop("-fno-schedule-insns", NONE_SUCH),
    drop("-fno-schedule-insns2", NONE_SUCH),
    drop("-fno-unit-at-a-time", NONE_SUCH),
    drop("-fmerge-constants", "clang merges equal constants where the linker can"),
    drop("-fzero-init-padding-bits=all", "only GCC 15 stopped clearing the padding of an initialised union"),
    drop("-fno-var-tracking-assignments", NO_DEBUG),
    drop("-fvar-tracking-assignments", NO_DEBUG),
    drop("-femit-struct-debug-baseonly", NO_DEBUG),
    drop_all("-femit-struct-debug-detailed=", "any", NO_DEBUG),
    drop("-feliminate-unused-debug-types", NO_DEBUG),
    drop("-fno-eliminate-unused-debug-types", NO_DEBUG),
    // scripts/Makefile.ubsan, Makefile.kasan and Makefile.kcsan.
    replace("-fsanitize=bounds-strict", &["-fsanitize=array-bounds"], "clang's word for it"),
    drop_all("--param=max-inline-insns-", "single=100", NONE_SUCH),
    drop_all("--param max-inline-insns-", "single=100", NONE_SUCH),
    respell("-fasan-shadow-offset=", "0x1000", &["-mllvm", "-asan-mapping-offset="], LLVM),
    // The order matters: the first has another name in LLVM.
    respell("--param asan-instrument-allocas=", "1", &["-mllvm", "-asan-instrument-dynamic-allocas="], LLVM),
    respell("--param asan-", "globals=1", &["-mllvm", "-asan-"], LLVM),
    respell("--param tsan-", "distinguish-volatile=1", &["-mllvm", "-tsan-"], LLVM),
];
