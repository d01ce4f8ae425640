// SPDX-License-Identifier: GPL-2.0-or-later
/* Proves that a candidate does what the definition of its family does, up to bounds. */
#include "proof.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Memory with a page before and one behind it that nothing may touch. */
static byte *guarded(void)
{
	byte *start = pages(GUARDED + 2 * PAGE);
	if (mprotect(start, PAGE, PROT_NONE) || mprotect(start + PAGE + GUARDED, PAGE, PROT_NONE))
		fail("mprotect");
	return start + PAGE;
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
