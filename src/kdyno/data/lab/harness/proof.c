// SPDX-License-Identifier: GPL-2.0-or-later
/* A call of a candidate, the memory around it, and what is compared behind it. */
#include "proof.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct proof proof;

/* Calls a routine with known values in the registers that it must leave alone, and rubbish in those that it may change. */
word lab_call(routine *candidate, const word *argument, struct registers *registers);
__asm__(".text\n.globl lab_call\nlab_call:\n\t"
	"push %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
	"push %rdx\n\tmov %rdi, %rax\n\tmov %rsi, %r10\n\tmov %rdx, %r11\n\t"
	"mov (%r11), %rbx\n\tmov 8(%r11), %rbp\n\tmov 16(%r11), %r12\n\tmov 24(%r11), %r13\n\t"
	"mov 32(%r11), %r14\n\tmov 40(%r11), %r15\n\t"
	"mov (%r10), %rdi\n\tmov 8(%r10), %rsi\n\tmov 16(%r10), %rdx\n\tmov 24(%r10), %rcx\n\tmov 32(%r10), %r8\n\t"
	"mov $-0x5a5a5a5b, %r9\n\tmov %r9, %r10\n\tmov %r9, %r11\n\t"
	"mov %rsp, lab_stack(%rip)\n\t"
	"call *%rax\n\t"
	"mov %rdx, lab_others(%rip)\n\tmov %r8, lab_others+8(%rip)\n\tmov %r9, lab_others+16(%rip)\n\t"
	"mov %r10, lab_others+24(%rip)\n\tmov %r11, lab_others+32(%rip)\n\t"
	"mov %rsp, %r10\n\tmov lab_stack(%rip), %rsp\n\tpushf\n\tpop %r11\n\tcld\n\t"
	"pop %rdx\n\t"
	"mov %rbx, 48(%rdx)\n\tmov %rbp, 56(%rdx)\n\tmov %r12, 64(%rdx)\n\tmov %r13, 72(%rdx)\n\t"
	"mov %r14, 80(%rdx)\n\tmov %r15, 88(%rdx)\n\tmov %r11, 96(%rdx)\n\t"
	"sub lab_stack(%rip), %r10\n\tmov %r10, 104(%rdx)\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n");
word lab_stack;
/* rdx and r8 to r11 behind the call. */
enum { OTHERS = 5 };
word lab_others[OTHERS];

void say_wrong(const char *what)
{
	const struct call *call = &proof.call;
	printf("wrong: %s; size %lu, offsets %lu and %lu, %s\n", what, call->size, call->to_offset, call->from_offset,
	       proof.where);
	fflush(stdout);
	_exit(WRONG);
}

byte *beside_guard(byte *area, word bytes, word offset, int at_end)
{
	word period = family.aligned == 1 ? ALIGNMENTS : family.aligned, wanted = family.aligned == 1 ? offset : 0;
	if (!at_end)
		return area + wanted % period;
	word latest = GUARDED - bytes - proof.slack;
	return area + latest - (latest + period - wanted % period) % period;
}

void content(byte *at, word bytes, word kind)
{
	if (kind == 1)
		memset(at, 0xff, bytes);
	else if (kind == 2)
		memset(at, 0, bytes);
	else
		randomise(at, bytes);
	if (kind == 3)
		for (word index = 0; index < bytes; index++)
			at[index] = at[index] & 1 ? 0xff : 0;
}

word window(const byte *area, const byte *at, word bytes, byte **start)
{
	long first = at - area - MARGIN, last = at - area + (long)bytes + MARGIN;
	first = first < 0 ? 0 : first;
	*start = (byte *)area + first;
	return (word)((last > GUARDED ? GUARDED : last) - first);
}

void compare(const char *what, const byte *is, const byte *should_be, word bytes, const byte *at)
{
	char text[96];
	if (!memcmp(is, should_be, bytes))
		return;
	for (word index = 0; index < bytes; index++)
		if (is[index] != should_be[index]) {
			snprintf(text, sizeof(text), "byte %+ld of the memory that is %s differs", (long)(is + index - at), what);
			say_wrong(text);
		}
}

word call_candidate(void)
{
	struct registers registers;
	for (word index = 0; index < SAVED; index++)
		registers.before[index] = lab_random();
	word result = lab_call(proof.candidate, proof.call.argument, &registers);
	if (memcmp(registers.before, registers.after, sizeof(registers.before)))
		say_wrong("a register that a routine must leave alone changed");
	if (registers.stack)
		say_wrong("the stack pointer changed");
	if (registers.flags & 0x400)
		say_wrong("the direction flag is set");
	const word rubbish = -0x5a5a5a5bL, others[OTHERS] = {
		proof.call.argument[2], proof.call.argument[4], rubbish, rubbish, rubbish,
	};
	if (family.keeps_others && memcmp(lab_others, others, sizeof(others)))
		say_wrong("a register that inline assembler doesn't expect to change changed");
	return result;
}
