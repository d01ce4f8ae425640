// SPDX-License-Identifier: GPL-2.0-or-later
/* Proves that a candidate does what the definition of its family does, up to bounds. */
#include "proof.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

/* Memory with a page before and one behind it that nothing may touch. */
static byte *guarded(void)
{
	byte *start = pages(GUARDED + 2 * PAGE);
	if (mprotect(start, PAGE, PROT_NONE) || mprotect(start + PAGE + GUARDED, PAGE, PROT_NONE))
		fail("mprotect");
	return start + PAGE;
}

struct proof proof;

void say_wrong(const char *what)
{
	const struct call *call = &proof.call;
	printf("wrong: %s; size %lu, offsets %lu and %lu, %s\n", what, call->size, call->to_offset, call->from_offset,
	       proof.where);
	fflush(stdout);
	_exit(WRONG);
}

static void on_fault(int number, siginfo_t *fault, void *context)
{
	char what[128];
	if (number == SIGSEGV && recover(fault, context))
		return;
	snprintf(what, sizeof(what), "signal %d at %+ld bytes of the memory that is written and %+ld of that which is read",
		 number, (long)fault->si_addr - (long)proof.call.to, (long)fault->si_addr - (long)proof.call.from);
	say_wrong(what);
}

/* A routine that doesn't come back is not proven, and not known to be wrong. */
static void on_timeout(int number)
{
	(void)number;
	printf("out of time in a call: size %lu, offsets %lu and %lu, %s\n", proof.call.size, proof.call.to_offset,
	       proof.call.from_offset, proof.where);
	fflush(stdout);
	_exit(0);
}

static void catch_faults(word seconds)
{
	static byte stack[1 << 16];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
	if (sigaltstack(&other, NULL))
		fail("sigaltstack");
	for (word index = 0; index < sizeof(signals) / sizeof(*signals); index++)
		if (sigaction(signals[index], &action, NULL))
			fail("sigaction");
	struct sigaction timeout = {.sa_handler = on_timeout, .sa_flags = SA_ONSTACK};
	if (sigaction(SIGALRM, &timeout, NULL))
		fail("sigaction");
	alarm((unsigned)seconds + 1);
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

static void prove_case(word size, word to_offset, word from_offset, int at_end, word kind)
{
	struct call *call = &proof.call;
	*call = (struct call){.size = size, .to_offset = to_offset, .from_offset = from_offset, .salt = lab_random()};
	proof.where = at_end ? "at the end of a page" : "at the start of a page";
	call->to = proof.to;
	call->from = proof.from;
	word to_bytes = family.to_bytes(call), from_bytes = family.from_bytes(call);
	call->to = beside_guard(proof.to, to_bytes, to_offset, at_end);
	call->from = beside_guard(proof.from, from_bytes, from_offset, at_end);
	byte *to, *from;
	word to_window = window(proof.to, call->to, to_bytes, &to);
	word from_window = window(proof.from, call->from, from_bytes, &from);
	randomise(to, to_window);
	content(from, from_window, kind);
	if (family.consumes)
		content(call->to, to_bytes, kind);
	family.fill(call);
	family.arguments(call);
	byte *shadow_to = proof.shadow_to + (to - proof.to), *shadow_from = proof.shadow_from + (from - proof.from);
	memcpy(shadow_to, to, to_window);
	memcpy(shadow_from, from, from_window);
	struct call shadow = *call;
	shadow.to = proof.shadow_to + (call->to - proof.to);
	shadow.from = proof.shadow_from + (call->from - proof.from);
	family.arguments(&shadow);
	word expected = family.normalise(&shadow, family.define(&shadow));

	word result = family.normalise(call, call_candidate());
	compare("written", to, shadow_to, to_window, call->to);
	compare("read", from, shadow_from, from_window, call->from);
	if (result != expected) {
		char text[96];
		snprintf(text, sizeof(text), "the result is %#lx instead of %#lx", result, expected);
		say_wrong(text);
	}
	proof.cases++;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The exhaustive cases of one size. */
static void prove_size(word size, word offsets)
{
	struct call probe = {.size = 1, .to = NULL};
	word to_offsets = family.to_bytes(&probe) ? offsets : 1, from_offsets = family.from_bytes(&probe) ? offsets : 1;
	for (word to = 0; to < to_offsets; to++)
		for (word from = 0; from < from_offsets; from++)
			for (int at_end = 0; at_end < 2; at_end++)
				prove_case(size, to, from, at_end, lab_random() % 4);
}

static void prove_random_size(const struct bounds *bounds)
{
	word size = bounds->least == bounds->most ? bounds->most : lab_random() % (bounds->most_random + 1);
	prove_case(size, lab_random() % bounds->offsets, lab_random() % bounds->offsets, (int)(lab_random() % 2),
		   lab_random() % 4);
}

/* Returns 1, and says how far the proof is, when its time is over. */
static int is_over(double end, const char *what, word done, word all)
{
	if (now() <= end)
		return 0;
	printf("out of time: %s %lu of %lu\n", what, done, all);
	return 1;
}

void prove(word candidate, const struct bounds *bounds)
{
	double end = now() + (double)bounds->seconds;
	proof = (struct proof){.candidate = candidates[candidate], .slack = bounds->slack};
	proof.to = guarded();
	proof.from = guarded();
	proof.shadow_to = guarded();
	proof.shadow_from = guarded();
	catch_faults(bounds->seconds);
	for (word size = bounds->least; size <= bounds->most; size++) {
		prove_size(size, bounds->offsets);
		if (is_over(end, "size", size, bounds->most))
			return;
	}
	word exhaustive = proof.cases;
	for (word index = 0; index < bounds->cases; index++) {
		prove_random_size(bounds);
		if (is_over(end, "case", index, bounds->cases))
			return;
	}
	word without_faults = proof.cases;
	for (word size = 1; size <= bounds->most_faults; size++) {
		prove_faults(size);
		if (is_over(end, "faults of size", size, bounds->most_faults))
			return;
	}
	printf("equal: %lu %lu %lu\n", exhaustive, without_faults - exhaustive, proof.cases - without_faults);
}
