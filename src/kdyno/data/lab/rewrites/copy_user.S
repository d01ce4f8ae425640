/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A user copy as a kernel has it inlined on a processor with FSRM: a fault leaves the bytes that remain in rcx. */
#include <linux/linkage.h>
#include <asm/asm.h>

SYM_FUNC_START(copy_user)
	movq %rdx, %rcx
1:	rep movsb
2:	movq %rcx, %rax
	RET
	_ASM_EXTABLE_UA(1b, 2b)
SYM_FUNC_END(copy_user)
