/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What assembler files of arch/x86/lib expect of the kernel's headers. An ALTERNATIVE is the instructions that a kernel
 * has after patching on a processor with the features that kdyno defined as 1; all others are 0.
 */
#ifndef KDYNO_LAB_ASSEMBLER_H
#define KDYNO_LAB_ASSEMBLER_H

#define SYM_FUNC_START(name) .globl name; .p2align 4; name:
#define SYM_TYPED_FUNC_START(name) SYM_FUNC_START(name)
#define SYM_FUNC_START_LOCAL(name) .p2align 4; name:
#define SYM_FUNC_START_WEAK(name) SYM_FUNC_START(name)
#define SYM_FUNC_END(name) .size name, . - name
#define SYM_FUNC_ALIAS(alias, name) .globl alias; .set alias, name
#define SYM_FUNC_ALIAS_WEAK(alias, name) .weak alias; .set alias, name
#define SYM_FUNC_ALIAS_MEMFUNC(alias, name) SYM_FUNC_ALIAS(alias, name)
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define ALIGN .p2align 4
#define RET ret
#define ENDBR
#define ANNOTATE_NOENDBR
#define __stringify_expanded(...) #__VA_ARGS__
#define __stringify(...) __stringify_expanded(__VA_ARGS__)

/* An entry of the table of recovered faults: where one is, where to go on, and its type. */
#define EXCEPTION_TABLE_ENTRY(from, to, type) \
	.pushsection __ex_table, "a"; .balign 4; .long (from) - .; .long (to) - .; .long type; .popsection
#define _ASM_EXTABLE(from, to) EXCEPTION_TABLE_ENTRY(from, to, 1)
#define _ASM_EXTABLE_UA(from, to) EXCEPTION_TABLE_ENTRY(from, to, 3)

#ifndef X86_FEATURE_FSRM
#define X86_FEATURE_FSRM 0
#endif
#ifndef X86_FEATURE_FSRS
#define X86_FEATURE_FSRS 0
#endif
#ifndef X86_FEATURE_ERMS
#define X86_FEATURE_ERMS 0
#endif
#ifndef X86_FEATURE_REP_GOOD
#define X86_FEATURE_REP_GOOD 0
#endif

.macro ALTERNATIVE old, new, feature
	.if \feature
	\new
	.else
	\old
	.endif
.endm

.macro ALTERNATIVE_2 old, new, feature, newer, other_feature
	.if \other_feature
	\newer
	.elseif \feature
	\new
	.else
	\old
	.endif
.endm

#endif
