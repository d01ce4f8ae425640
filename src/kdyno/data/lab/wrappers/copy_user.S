/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree's user copy, which inline assembler calls with the size in rcx and gets the result from there, as a function. */
#include KDYNO_SOURCE

SYM_FUNC_START(copy_user)
	movq %rdx, %rcx
	call rep_movs_alternative
	movq %rcx, %rax
	RET
SYM_FUNC_END(copy_user)
