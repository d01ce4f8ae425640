/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memmove in words of eight bytes. Up to 32 bytes all are loaded before any is stored. Longer moves are blocks of 32
 * bytes, from that end on which they don't overwrite what is still to be read; the block at the other end is loaded
 * first and stored last.
 */
#include <linux/linkage.h>

SYM_FUNC_START(__memmove)
	movq	%rdi, %rax
	cmpq	$16, %rdx
	jbe	.Lmemmove_up_to_16
	cmpq	$32, %rdx
	jbe	.Lmemmove_up_to_32

	movq	%rdi, %rcx
	subq	%rsi, %rcx
	cmpq	%rdx, %rcx
	jb	.Lmemmove_backward

#ifdef REP_FROM
	cmpq	$REP_FROM, %rdx
	jae	.Lmemmove_rep
#endif
	/* The last 32 bytes, which a block may overwrite. */
	movq	-32(%rsi, %rdx), %r8
	movq	-24(%rsi, %rdx), %r9
	movq	-16(%rsi, %rdx), %r10
	movq	-8(%rsi, %rdx), %r11
	leaq	-32(%rdi, %rdx), %rdx
	.p2align 4
.Lmemmove_forward_block:
	movq	(%rsi), %rcx
	movq	%rcx, (%rdi)
	movq	8(%rsi), %rcx
	movq	%rcx, 8(%rdi)
	movq	16(%rsi), %rcx
	movq	%rcx, 16(%rdi)
	movq	24(%rsi), %rcx
	movq	%rcx, 24(%rdi)
	addq	$32, %rsi
	addq	$32, %rdi
	cmpq	%rdx, %rdi
	jb	.Lmemmove_forward_block
	movq	%r8, (%rdx)
	movq	%r9, 8(%rdx)
	movq	%r10, 16(%rdx)
	movq	%r11, 24(%rdx)
	RET
#ifdef REP_FROM

.Lmemmove_rep:
	movq	%rdx, %rcx
	rep movsb
	RET
#endif

	/* The first 32 bytes are loaded first here; %rdi and %rsi are the ends of what is left. */
	.p2align 4
.Lmemmove_backward:
	movq	(%rsi), %r8
	movq	8(%rsi), %r9
	movq	16(%rsi), %r10
	movq	24(%rsi), %r11
	addq	%rdx, %rsi
	addq	%rdx, %rdi
	leaq	32(%rax), %rdx
	.p2align 4
.Lmemmove_backward_block:
	movq	-8(%rsi), %rcx
	movq	%rcx, -8(%rdi)
	movq	-16(%rsi), %rcx
	movq	%rcx, -16(%rdi)
	movq	-24(%rsi), %rcx
	movq	%rcx, -24(%rdi)
	movq	-32(%rsi), %rcx
	movq	%rcx, -32(%rdi)
	subq	$32, %rsi
	subq	$32, %rdi
	cmpq	%rdx, %rdi
	ja	.Lmemmove_backward_block
	movq	%r8, (%rax)
	movq	%r9, 8(%rax)
	movq	%r10, 16(%rax)
	movq	%r11, 24(%rax)
	RET

	.p2align 4
.Lmemmove_up_to_32:
	movq	(%rsi), %rcx
	movq	8(%rsi), %r8
	movq	-16(%rsi, %rdx), %r9
	movq	-8(%rsi, %rdx), %r10
	movq	%rcx, (%rdi)
	movq	%r8, 8(%rdi)
	movq	%r9, -16(%rdi, %rdx)
	movq	%r10, -8(%rdi, %rdx)
	RET

	.p2align 4
.Lmemmove_up_to_16:
	cmpq	$8, %rdx
	jb	.Lmemmove_up_to_7
	movq	(%rsi), %rcx
	movq	-8(%rsi, %rdx), %r8
	movq	%rcx, (%rdi)
	movq	%r8, -8(%rdi, %rdx)
	RET

	.p2align 4
.Lmemmove_up_to_7:
	cmpq	$4, %rdx
	jb	.Lmemmove_up_to_3
	movl	(%rsi), %ecx
	movl	-4(%rsi, %rdx), %r8d
	movl	%ecx, (%rdi)
	movl	%r8d, -4(%rdi, %rdx)
	RET

	/* The first byte, the middle one and the last one are all that there are. */
	.p2align 4
.Lmemmove_up_to_3:
	testq	%rdx, %rdx
	jz	.Lmemmove_end
	movq	%rdx, %r9
	shrq	%r9
	movzbl	(%rsi), %ecx
	movzbl	(%rsi, %r9), %r8d
	movzbl	-1(%rsi, %rdx), %r10d
	movb	%cl, (%rdi)
	movb	%r8b, (%rdi, %r9)
	movb	%r10b, -1(%rdi, %rdx)
.Lmemmove_end:
	RET
SYM_FUNC_END(__memmove)

	.section .note.GNU-stack, "", @progbits
