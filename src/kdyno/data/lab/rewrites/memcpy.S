/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memcpy in words of eight bytes. Up to 32 bytes it has no loop: it loads the words of the beginning and those of the
 * end, which may overlap, before it stores any. Longer copies are blocks of 32 bytes, the last of which overlaps the one
 * before.
 */
#include <linux/linkage.h>

SYM_FUNC_START(__memcpy)
	movq	%rdi, %rax
#ifdef WORDS_UP_TO
	/* One branch chooses `rep movsb` for short and for long copies: sizes that change mispredict it less often. */
	movq	%rdx, %rcx
	leaq	-(REP_UP_TO + 1)(%rdx), %r8
	cmpq	$(WORDS_UP_TO - REP_UP_TO - 1), %r8
	jbe	.Lmemcpy_blocks
	rep movsb
	RET
#endif
#ifndef WORDS_UP_TO
	cmpq	$16, %rdx
	jbe	.Lmemcpy_up_to_16
	cmpq	$32, %rdx
	jbe	.Lmemcpy_up_to_32
#endif
#ifdef REP_FROM
	cmpq	$REP_FROM, %rdx
	jae	.Lmemcpy_rep
#endif

.Lmemcpy_blocks:
	leaq	-32(%rdi, %rdx), %r11
	leaq	-32(%rsi, %rdx), %rdx
	.p2align 4
.Lmemcpy_block:
	movq	(%rsi), %rcx
	movq	8(%rsi), %r8
	movq	16(%rsi), %r9
	movq	24(%rsi), %r10
	addq	$32, %rsi
	movq	%rcx, (%rdi)
	movq	%r8, 8(%rdi)
	movq	%r9, 16(%rdi)
	movq	%r10, 24(%rdi)
	addq	$32, %rdi
	cmpq	%r11, %rdi
	jb	.Lmemcpy_block

	/* The last 32 bytes. */
	movq	(%rdx), %rcx
	movq	8(%rdx), %r8
	movq	16(%rdx), %r9
	movq	24(%rdx), %r10
	movq	%rcx, (%r11)
	movq	%r8, 8(%r11)
	movq	%r9, 16(%r11)
	movq	%r10, 24(%r11)
	RET
#ifdef REP_FROM

.Lmemcpy_rep:
	movq	%rdx, %rcx
	rep movsb
	RET
#endif
#ifndef WORDS_UP_TO

	.p2align 4
.Lmemcpy_up_to_32:
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
.Lmemcpy_up_to_16:
	cmpq	$8, %rdx
	jb	.Lmemcpy_up_to_7
	movq	(%rsi), %rcx
	movq	-8(%rsi, %rdx), %r8
	movq	%rcx, (%rdi)
	movq	%r8, -8(%rdi, %rdx)
	RET

	.p2align 4
.Lmemcpy_up_to_7:
	cmpq	$4, %rdx
	jb	.Lmemcpy_up_to_3
	movl	(%rsi), %ecx
	movl	-4(%rsi, %rdx), %r8d
	movl	%ecx, (%rdi)
	movl	%r8d, -4(%rdi, %rdx)
	RET

	/* The first byte, the middle one and the last one are all that there are. */
	.p2align 4
.Lmemcpy_up_to_3:
	testq	%rdx, %rdx
	jz	.Lmemcpy_end
	movq	%rdx, %r9
	shrq	%r9
	movzbl	(%rsi), %ecx
	movzbl	(%rsi, %r9), %r8d
	movzbl	-1(%rsi, %rdx), %r10d
	movb	%cl, (%rdi)
	movb	%r8b, (%rdi, %r9)
	movb	%r10b, -1(%rdi, %rdx)
.Lmemcpy_end:
	RET
#endif
SYM_FUNC_END(__memcpy)

	.section .note.GNU-stack, "", @progbits
