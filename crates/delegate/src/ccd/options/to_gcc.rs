//! Clang's options that GCC doesn't know. Sources: the manuals of GCC 12 and clang 19, what GCC 12 says when it is given
//! them, and how Linux 6.12's makefiles call each compiler.

use super::{Row, drop, drop_all, replace, respell};

const OTHER_DRIVER: &str = "GCC is made for one target and always calls an assembler";
const PARAMETER: &str = "a parameter of GCC";
const NO_WARNING: &str = "GCC has no such warning";

/// scripts/Makefile.extrawarn, Makefile and arch/x86/Makefile give these to GCC only: warnings that are off, and what
/// makes its code fit the kernel. (`-fno-allow-store-data-races` is for -Ofast; it is the default of -O2.)
pub const ADDITIONAL: &[&str] = &[
    "-Wno-main",
    "-Wno-maybe-uninitialized",
    "-Wno-alloc-size-larger-than",
    "-Wno-array-bounds",
    "-Wno-stringop-overflow",
    "-Wno-stringop-truncation",
    "-Wno-format-truncation",
    "-Wno-dangling-pointer",
    "-Wno-packed-not-aligned",
    "-fno-allow-store-data-races",
    "-fconserve-stack",
];

pub const ROWS: &[Row] = &[
    replace("-mstack-alignment=8", &["-mpreferred-stack-boundary=3"], "GCC counts in powers of two"),
    replace("-mstack-alignment=16", &["-mpreferred-stack-boundary=4"], "GCC counts in powers of two"),
    replace(
        "-mretpoline-external-thunk",
        &["-mindirect-branch=thunk-extern", "-mindirect-branch-register"],
        "GCC's words for retpolines",
    ),
    drop("-mretpoline", "-mretpoline-external-thunk beside it says what is to be done"),
    drop("-fintegrated-as", OTHER_DRIVER),
    drop("-fno-integrated-as", OTHER_DRIVER),
    drop_all("--target=", "x86_64-linux-gnu", OTHER_DRIVER),
    drop("-Qunused-arguments", "GCC takes options that don't matter to a call"),
    drop("-fno-discard-value-names", "names in LLVM's own language"),
    drop("-fno-addrsig", "GCC makes no .llvm_addrsig"),
    drop("-faddrsig", "GCC makes no .llvm_addrsig"),
    drop("-mno-global-merge", "GCC doesn't merge global variables"),
    drop("-mno-outline", "GCC outlines no parts of functions by this pass"),
    drop(
        "-flto=thin",
        "ld.lld links GCC's objects beside clang's intermediate code, as it does those of assembly code",
    ),
    drop("-fsplit-lto-unit", "it matters to link-time optimisation only"),
    replace("-gmlt", &["-g1"], "GCC's word for lines only"),
    replace("-gline-tables-only", &["-g1"], "GCC's word for lines only"),
    drop("-fdebug-info-for-profiling", "GCC has no such setting; its own profiles need none"),
    replace("-fsanitize=array-bounds", &["-fsanitize=bounds-strict"], "GCC's word for it"),
    drop("-fsanitize=local-bounds", "GCC has nothing for pointers"),
    replace("-fsanitize-trap=undefined", &["-fsanitize-undefined-trap-on-error"], "its name before GCC 13"),
    drop("-Werror=unknown-warning-option", NO_WARNING),
    drop("-Werror=ignored-optimization-argument", NO_WARNING),
    drop("-Werror=option-ignored", NO_WARNING),
    drop("-Werror=unused-command-line-argument", NO_WARNING),
    drop("-Wformat-insufficient-args", NO_WARNING),
    drop("-Wformat-invalid-specifier", NO_WARNING),
    respell("-mllvm -asan-mapping-offset=", "0x1000", &["-fasan-shadow-offset="], "GCC's word for it")
        .beside(&["-fsanitize=kernel-address"]),
    respell("-mllvm -asan-instrument-dynamic-allocas=", "1", &["--param", "asan-instrument-allocas="], PARAMETER),
    respell("-mllvm -asan-", "globals=1", &["--param", "asan-"], PARAMETER),
    respell("-mllvm -tsan-", "distinguish-volatile=1", &["--param", "tsan-"], PARAMETER),
];
