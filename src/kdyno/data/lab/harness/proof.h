/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the proofs share: the memory of a call, and what is compared behind it. */
#ifndef KDYNO_PROOF_H
#define KDYNO_PROOF_H

#include "harness.h"
#include <signal.h>

enum { SAVED = 6, GUARDED = 1 << 17, MARGIN = 256 };

struct registers {
	word before[SAVED], after[SAVED], flags, stack;
};

struct proof {
	routine *candidate;
	byte *to, *from, *shadow_to, *shadow_from;
	/* Readable bytes behind a call's memory that it may touch, before the guard. */
	word slack;
	word cases;
	const char *where;
	struct call call;
};

extern struct proof proof;

/* Calls the candidate with the arguments of the proof's call; says if it breaks the calling convention. */
word call_candidate(void);

/* Ends the program: the candidate is wrong. */
void say_wrong(const char *what);

/* Content of the kinds 0 to 3: carries and ends are where routines go wrong. */
void content(byte *at, word bytes, word kind);

/* The memory around a call's that is compared, and its start. */
word window(const byte *area, const byte *at, word bytes, byte **start);

/* Says if memory is not what it should be; `at` is where that of the call begins. */
void compare(const char *what, const byte *is, const byte *should_be, word bytes, const byte *at);

/* An address for `bytes` with an offset: as near as possible to the guard behind it, or to the one before it. */
byte *beside_guard(byte *area, word bytes, word offset, int at_end);

/* Proves a call of this size with a fault at each of its bytes. */
void prove_faults(word size);

/* Continues a routine behind a fault as its exception table says. Returns 0 if nothing recovers it. */
int recover(const siginfo_t *fault, void *context);

#endif
