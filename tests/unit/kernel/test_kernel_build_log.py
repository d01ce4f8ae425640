"""The first error of a build log, as compilers, linkers and make have said it."""

from __future__ import annotations

import pytest

from kdyno.kernel.build_log import LONGEST_LINE, disk_full, first_error, is_step

NOISE = ["  CC      fs/open.o", "../fs/open.c:3:4: warning: unused variable 'x' [-Wunused-variable]"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "../fs/open.c:13:16: error: 'undeclared_file' undeclared (first use in this function)",
            "fs/open.c:13:16: error: 'undeclared_file' undeclared (first use in this function)",
        ),
        (
            "fs/open.c:13:9: error: use of undeclared identifier 'x'",
            "fs/open.c:13:9: error: use of undeclared identifier 'x'",
        ),
        ("../mm/a.h:1:10: fatal error: gelf.h: No such file or directory", None),
        ("init/main.c:(.text+0x5a): undefined reference to `nowhere'", None),
        ("ld.lld-19: error: undefined symbol: nowhere_to_be_found", None),
        ("ld: cannot find -lelf: No such file or directory", None),
        ("vmlinux.o: error: objtool: sys_open+0x1: unreachable instruction", None),
        ('ERROR: modpost: "nowhere" [drivers/a.ko] undefined!', None),
        ("gcc: fatal error: Killed signal terminated program cc1", None),
        ("make[3]: *** No rule to make target 'net/nowhere.o', needed by 'vmlinux'.  Stop.", None),
        ("/bin/sh: 1: flex: not found", None),
        ("*** The source tree is not clean", None),
        ("vmlinux.o: objtool: .text: objtool: an error", None),
        ("as: Assertion failure in x.c: Assertion `y' failed.", None),
    ],
)
def test_the_first_error_is_found_among_noise(line: str, message: str | None) -> None:
    tail = [
        "make[2]: *** [../scripts/Makefile.build:229: fs/open.o] Error 1",
        "make: *** [Makefile:224: __sub-make] Error 2",
    ]
    assert first_error([*NOISE, line, *tail]) == (message or line.removeprefix("../"))


def test_the_linkers_line_that_only_says_where_is_passed_over() -> None:
    lines = ["ld: init/main.o: in function `start_kernel':", "main.c:(.text+0x5a): undefined reference to `nowhere'"]
    assert first_error(lines) == lines[1]


def test_without_a_known_error_the_last_words_are_shown() -> None:
    assert first_error([*NOISE[:1], "something odd", ""]) == "something odd"
    assert first_error([]) == "it printed nothing"


def test_a_full_disk_is_recognised_whoever_says_it() -> None:
    assert disk_full(["/tmp/cc1.s: Fatal error: can't write 12 bytes to section .text: 'No space left on device'"])
    assert not disk_full(NOISE)


def test_no_more_of_a_line_is_looked_at_than_anybody_reads() -> None:
    assert first_error(["a.c:1:2: error: " + "x" * 1_000_000]).endswith("x" * 100)
    assert len(first_error(["objtool: " * 1_000_000])) <= LONGEST_LINE


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("  CC      fs/open.o", True),
        ("  LD [M]  fs/ext4/ext4.ko", True),
        ("  OBJCOPY arch/x86/boot/vmlinux.bin", True),
        ("vmlinux.o: warning: objtool: .text+0x10: unreachable instruction", False),
        ("make[1]: Entering directory '/tmp/o'", False),
        ("    A note that is indented", False),
        ("", False),
    ],
)
def test_a_warning_is_no_step_of_a_build(line: str, is_one: bool) -> None:
    assert is_step(line) is is_one
