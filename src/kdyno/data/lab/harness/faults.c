// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Proves what a candidate does where a part of its memory is missing: its exception table recovers the fault, and the
 * family judges the outcome. Each of a call's bytes is the first missing one of the read and of the written memory, with
 * all behind it, and the last one, with all before it.
 */
#define _GNU_SOURCE
#include "proof.h"
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { WORD_OFFSETS = 8 };

/* An entry of the kernel's __ex_table: distances from the fields themselves. */
struct recovery {
	int fault, next, type;
};

/* The linker's names of the tables of all candidates; null if none has one. */
extern const struct recovery __start___ex_table[] __attribute__((weak)), __stop___ex_table[] __attribute__((weak));

static struct fault missing;
static word recovered;

/* Where the missing bytes are, or 0 if none are. */
static word missing_start(void)
{
	return missing.first == missing.end ? 0 : (word)(missing.is_written ? proof.call.to : proof.call.from) + missing.first;
}

int recover(const siginfo_t *fault, void *context)
{
	greg_t *place = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	word start = missing_start(), address = (word)fault->si_addr;
	if (!start || address < start || address >= start + missing.end - missing.first)
		return 0;
	for (const struct recovery *row = __start___ex_table; row < __stop___ex_table; row++)
		if ((word)&row->fault + (word)(long)row->fault == (word)*place) {
			*place = (greg_t)((word)&row->next + (word)(long)row->next);
			recovered++;
			return 1;
		}
	say_wrong("its exception table doesn't recover a fault");
	return 0;
}

/* Everything but the written bytes of the call is as it was. */
static void compare_rest(const byte *to, word to_window, const byte *from, word from_window)
{
	const struct call *call = &proof.call;
	const byte *shadow_to = proof.shadow_to + (to - proof.to), *end = to + to_window;
	const byte *behind = call->to + call->size < end ? call->to + call->size : end;
	if (call->to > to)
		compare("written", to, shadow_to, (word)(call->to - to), call->to);
	compare("written", behind, proof.shadow_to + (behind - proof.to), (word)(end - behind), call->to);
	compare("read", from, proof.shadow_from + (from - proof.from), from_window, call->from);
}

static void prove_fault(void)
{
	struct call *call = &proof.call;
	byte *to, *from;
	word to_window = window(proof.to, call->to, call->size, &to);
	word from_window = window(proof.from, call->from, call->size, &from);
	randomise(to, to_window);
	content(from, from_window, lab_random() % 4);
	memcpy(proof.shadow_to + (to - proof.to), to, to_window);
	memcpy(proof.shadow_from + (from - proof.from), from, from_window);
	missing.before = proof.shadow_to + (call->to - proof.to);
	family.arguments(call);
	recovered = 0;
	word result = call_candidate();
	if (!recovered)
		say_wrong("it never accesses the missing memory");
	compare_rest(to, to_window, from, from_window);
	const char *complaint = family.judge_fault(call, &missing, result);
	if (complaint)
		say_wrong(complaint);
	proof.cases++;
}

/* Place both memories of a call, so that the bytes that are missing are in a guard. */
static void place(word size, word offset)
{
	struct call *call = &proof.call;
	byte *area = missing.is_written ? proof.to : proof.from, *other = missing.is_written ? proof.from : proof.to;
	byte *faulting = missing.first ? area + GUARDED - missing.first : area - missing.end;
	byte *whole = beside_guard(other, size, offset, (int)(lab_random() % 2));
	*call = (struct call){.size = size, .salt = lab_random()};
	call->to = missing.is_written ? faulting : whole;
	call->from = missing.is_written ? whole : faulting;
	*(missing.is_written ? &call->from_offset : &call->to_offset) = offset;
}

void prove_faults(word size)
{
	static char where[96];
	proof.where = where;
	for (word index = 0; index < 4 * size * WORD_OFFSETS; index++) {
		word byte_number = index / 4 / WORD_OFFSETS, is_behind = index % 2;
		missing = (struct fault){
			.is_written = index / 2 % 2,
			.first = is_behind ? byte_number : 0,
			.end = is_behind ? size : byte_number + 1,
		};
		snprintf(where, sizeof(where), "bytes %lu to %lu of the %s memory are missing", missing.first,
			 missing.end - 1, missing.is_written ? "written" : "read");
		place(size, index / 4 % WORD_OFFSETS);
		prove_fault();
	}
	missing = (struct fault){.first = 0};
}
