/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memset in words of eight bytes, the last of which overlap those before: no loop of bytes.
 */
#include <linux/linkage.h>

SYM_FUNC_START(__memset)
	movq	%rdi, %r8
	movzbl	%sil, %eax
	movabsq	$0x0101010101010101, %rcx
	imulq	%rcx, %rax
	cmpq	$16, %rdx
	jbe	.Lmemset_up_to_16
	cmpq	$32, %rdx
	jbe	.Lmemset_up_to_32
#ifdef REP_FROM
	cmpq	$REP_FROM, %rdx
	jae	.Lmemset_rep
#endif

	leaq	-32(%rdi, %rdx), %rcx
	.p2align 4
.Lmemset_block:
	movq	%rax, (%rdi)
	movq	%rax, 8(%rdi)
	movq	%rax, 16(%rdi)
	movq	%rax, 24(%rdi)
	addq	$32, %rdi
	cmpq	%rcx, %rdi
	jb	.Lmemset_block

	/* The last 32 bytes. */
	movq	%rax, (%rcx)
	movq	%rax, 8(%rcx)
	movq	%rax, 16(%rcx)
	movq	%rax, 24(%rcx)
	movq	%r8, %rax
	RET
#ifdef REP_FROM

.Lmemset_rep:
	movq	%rdx, %rcx
	rep stosb
	movq	%r8, %rax
	RET
#endif

	.p2align 4
.Lmemset_up_to_32:
	movq	%rax, (%rdi)
	movq	%rax, 8(%rdi)
	movq	%rax, -16(%rdi, %rdx)
	movq	%rax, -8(%rdi, %rdx)
	movq	%r8, %rax
	RET

	.p2align 4
.Lmemset_up_to_16:
	cmpq	$8, %rdx
	jb	.Lmemset_up_to_7
	movq	%rax, (%rdi)
	movq	%rax, -8(%rdi, %rdx)
	movq	%r8, %rax
	RET

	.p2align 4
.Lmemset_up_to_7:
	cmpq	$4, %rdx
	jb	.Lmemset_up_to_3
	movl	%eax, (%rdi)
	movl	%eax, -4(%rdi, %rdx)
	movq	%r8, %rax
	RET

	/* The first byte, the middle one and the last one are all that there are. */
	.p2align 4
.Lmemset_up_to_3:
	testq	%rdx, %rdx
	jz	.Lmemset_end
	movb	%al, (%rdi)
	movb	%al, -1(%rdi, %rdx)
	shrq	%rdx
	movb	%al, (%rdi, %rdx)
.Lmemset_end:
	movq	%r8, %rax
	RET
SYM_FUNC_END(__memset)

	.section .note.GNU-stack, "", @progbits
