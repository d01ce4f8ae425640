/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clear_page by stores past the caches, by a line at a time without reading it, or by 128 bytes of plain stores an
 * iteration.
 */
	.text

/* The stores are ordered before what follows, as plain ones are: the page may be given to another CPU next. */
	.globl clear_page_movnti
	.p2align 4
clear_page_movnti:
	xorl %eax, %eax
	movl $4096/64, %ecx
1:	movnti %rax, (%rdi)
	movnti %rax, 8(%rdi)
	movnti %rax, 16(%rdi)
	movnti %rax, 24(%rdi)
	movnti %rax, 32(%rdi)
	movnti %rax, 40(%rdi)
	movnti %rax, 48(%rdi)
	movnti %rax, 56(%rdi)
	addq $64, %rdi
	decl %ecx
	jnz 1b
	sfence
	ret

	.globl clear_page_clzero
	.p2align 4
clear_page_clzero:
	movq %rdi, %rax
	movl $4096/256, %ecx
1:	clzero
	addq $64, %rax
	clzero
	addq $64, %rax
	clzero
	addq $64, %rax
	clzero
	addq $64, %rax
	decl %ecx
	jnz 1b
	sfence
	ret

	.globl clear_page_plain
	.p2align 4
clear_page_plain:
	xorl %eax, %eax
	leaq 4096(%rdi), %rcx
	.p2align 4
1:	movq %rax, (%rdi)
	movq %rax, 8(%rdi)
	movq %rax, 16(%rdi)
	movq %rax, 24(%rdi)
	movq %rax, 32(%rdi)
	movq %rax, 40(%rdi)
	movq %rax, 48(%rdi)
	movq %rax, 56(%rdi)
	movq %rax, 64(%rdi)
	movq %rax, 72(%rdi)
	movq %rax, 80(%rdi)
	movq %rax, 88(%rdi)
	movq %rax, 96(%rdi)
	movq %rax, 104(%rdi)
	movq %rax, 112(%rdi)
	movq %rax, 120(%rdi)
	subq $-128, %rdi
	cmpq %rcx, %rdi
	jne 1b
	ret

	.section .note.GNU-stack, "", @progbits
