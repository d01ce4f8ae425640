/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the harness share. */
#ifndef KDYNO_HARNESS_H
#define KDYNO_HARNESS_H

#define _GNU_SOURCE
#include "lab.h"

enum { PAGE = 4096 };
enum { WRONG_USAGE = 2, REFUSED = 3, WRONG = 4 };

/* Ends the program: the system refused something. */
void fail(const char *what);

/* Memory in pages of 4 kB: large pages would make a TLB's misses go away on some hosts only. */
byte *pages(word bytes);

/* Sets the seed of lab_random(). */
void seed_random(word seed);

void randomise(byte *at, word bytes);

/* Times this many candidates in the cells of standard input. */
void time_all(word known);

/* How far a proof goes. */
struct bounds {
	/* All sizes from `least` to `most` at so many offsets of each address. */
	word least, most, offsets;
	/* Random cases, and the largest size of one. */
	word cases, most_random;
	/* Readable bytes behind a call's memory that it may touch. */
	word slack;
	word seconds;
	/* The largest size of a call with a fault at each of its bytes; 0: none. */
	word most_faults;
};

/* Proves a candidate, and says the outcome. */
void prove(word candidate, const struct bounds *bounds);

#endif
