/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * csum_partial_copy_generic by words at any alignment: 64 bytes an iteration, then at most one block each of 32, 16, 8, 4,
 * 2 and 1 bytes. Two sums, and no register that must be saved.
 */
#include <linux/linkage.h>
#include <asm/asm.h>

	.macro csum_user instruction:vararg
.Lcsum_access\@:
	\instruction
	_ASM_EXTABLE_UA(.Lcsum_access\@, .Lcsum_fault)
	.endm

	/* No processor should fault here, but a kernel expects that one may. */
	.macro csum_prefetch address:vararg
.Lcsum_prefetch\@:
	prefetcht0 \address
	_ASM_EXTABLE(.Lcsum_prefetch\@, .Lcsum_prefetched\@)
.Lcsum_prefetched\@:
	.endm

	/* Copies 32 bytes, and adds them to a sum, whose carry goes back into it. */
	.macro csum_four_words at, sum
	csum_user movq 0+\at(%rdi), %r8
	csum_user movq 8+\at(%rdi), %r9
	csum_user movq 16+\at(%rdi), %r10
	csum_user movq 24+\at(%rdi), %r11
	addq %r8, \sum
	adcq %r9, \sum
	adcq %r10, \sum
	adcq %r11, \sum
	adcq $0, \sum
	csum_user movq %r8, 0+\at(%rsi)
	csum_user movq %r9, 8+\at(%rsi)
	csum_user movq %r10, 16+\at(%rsi)
	csum_user movq %r11, 24+\at(%rsi)
	.endm

	.macro csum_advance bytes
	addq $\bytes, %rdi
	addq $\bytes, %rsi
	.endm

SYM_FUNC_START(csum_partial_copy_generic)
	movl $-1, %eax
	xorl %ecx, %ecx
	subl $64, %edx
	jb .Lcsum_rest
	.p2align 4
.Lcsum_loop:
	csum_prefetch 320(%rdi)
	csum_prefetch 320(%rsi)
	csum_four_words 0, %rax
	csum_four_words 32, %rcx
	csum_advance 64
	subl $64, %edx
	jae .Lcsum_loop
.Lcsum_rest:
	/* The low six bits of the size are those of the remaining bytes. */
	testb $32, %dl
	je .Lcsum_16
	csum_four_words 0, %rcx
	csum_advance 32
.Lcsum_16:
	testb $16, %dl
	je .Lcsum_8
	csum_user movq (%rdi), %r8
	csum_user movq 8(%rdi), %r9
	addq %r8, %rax
	adcq %r9, %rax
	adcq $0, %rax
	csum_user movq %r8, (%rsi)
	csum_user movq %r9, 8(%rsi)
	csum_advance 16
.Lcsum_8:
	testb $8, %dl
	je .Lcsum_4
	csum_user movq (%rdi), %r8
	addq %r8, %rcx
	adcq $0, %rcx
	csum_user movq %r8, (%rsi)
	csum_advance 8
.Lcsum_4:
	testb $7, %dl
	je .Lcsum_fold
	xorl %r8d, %r8d
	xorl %r9d, %r9d
	xorl %r10d, %r10d
	testb $4, %dl
	je .Lcsum_2
	csum_user movl (%rdi), %r8d
	csum_user movl %r8d, (%rsi)
	csum_advance 4
.Lcsum_2:
	testb $2, %dl
	je .Lcsum_1
	csum_user movzwl (%rdi), %r9d
	csum_user movw %r9w, (%rsi)
	csum_advance 2
.Lcsum_1:
	testb $1, %dl
	je .Lcsum_few
	csum_user movzbl (%rdi), %r10d
	csum_user movb %r10b, (%rsi)
.Lcsum_few:
	addq %r9, %r8
	addq %r10, %r8
	addq %r8, %rax
	adcq $0, %rax
.Lcsum_fold:
	addq %rcx, %rax
	adcq $0, %rax
	movq %rax, %rcx
	shrq $32, %rcx
	addl %ecx, %eax
	adcl $0, %eax
	RET
.Lcsum_fault:
	/* No sum is 0: it begins with all ones. */
	xorl %eax, %eax
	RET
SYM_FUNC_END(csum_partial_copy_generic)
