/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copy_page by `rep movsb`, by plain words, or by stores past the caches. */
	.text

	.globl copy_page_movsb
	.p2align 4
copy_page_movsb:
	movl $4096, %ecx
	rep movsb
	ret

	.macro copy_loop store
	movl $4096/64, %ecx
	.p2align 4
1:	movq (%rsi), %rax
	movq 8(%rsi), %rdx
	movq 16(%rsi), %r8
	movq 24(%rsi), %r9
	\store %rax, (%rdi)
	\store %rdx, 8(%rdi)
	\store %r8, 16(%rdi)
	\store %r9, 24(%rdi)
	movq 32(%rsi), %rax
	movq 40(%rsi), %rdx
	movq 48(%rsi), %r8
	movq 56(%rsi), %r9
	\store %rax, 32(%rdi)
	\store %rdx, 40(%rdi)
	\store %r8, 48(%rdi)
	\store %r9, 56(%rdi)
	addq $64, %rsi
	addq $64, %rdi
	decl %ecx
	jnz 1b
	.endm

	.globl copy_page_words
	.p2align 4
copy_page_words:
	copy_loop movq
	ret

/* Ordered before what follows, as plain stores are. */
	.globl copy_page_movnti
	.p2align 4
copy_page_movnti:
	copy_loop movnti
	sfence
	ret

	.section .note.GNU-stack, "", @progbits
