// SPDX-License-Identifier: GPL-2.0-or-later
/* Times the candidates: cycles of the core per call, the least of some batches. */
#include "harness.h"
#include "../../clock.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, BATCHES = 5, MOST_CALLS = 512, FEWEST_CALLS = 16 };
enum { BATCH_BYTES = 1 << 16, CALL_BYTES = 32, MOST_REQUESTS = 64, MOST_SIZE = 1 << 20 };

static word whole_pages(word bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static double ticks_per_cycle(void)
{
	return (double)beat() / BEAT;
}

enum mode { WARM, COLD, USED };

struct cell {
	enum mode mode;
	word requests;
	struct call calls[MOST_REQUESTS];
	word to_stride, from_stride;
};

static void stay_on_one_cpu(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static int read_cell(struct cell *cell)
{
	char mode[8];
	if (scanf("%7s %lu", mode, &cell->requests) != 2)
		return 0;
	cell->mode = !strcmp(mode, "cold") ? COLD : !strcmp(mode, "used") ? USED : WARM;
	if (!cell->requests || cell->requests > MOST_REQUESTS)
		exit(WRONG_USAGE);
	word to = 0, from = 0;
	for (word index = 0; index < cell->requests; index++) {
		struct call *call = &cell->calls[index];
		memset(call, 0, sizeof(*call));
		if (scanf("%lu %lu %lu", &call->size, &call->to_offset, &call->from_offset) != 3 ||
		    call->size > MOST_SIZE || call->to_offset >= PAGE || call->from_offset >= PAGE)
			exit(WRONG_USAGE);
		call->salt = lab_random();
		word to_bytes = family.to_bytes(call) + PAGE, from_bytes = family.from_bytes(call) + PAGE;
		to = to_bytes > to ? to_bytes : to;
		from = from_bytes > from ? from_bytes : from;
	}
	cell->to_stride = whole_pages(to);
	cell->from_stride = whole_pages(from);
	return 1;
}

/* Give each request its own memory, and what it needs there. */
static void place(struct cell *cell, byte *to, byte *from)
{
	for (word index = 0; index < cell->requests; index++) {
		struct call *call = &cell->calls[index];
		int moves = family.aligned == 1;
		call->to = to + index * cell->to_stride + (moves ? call->to_offset : 0);
		call->from = from + index * cell->from_stride + (moves ? call->from_offset : 0);
	}
}

static void refill(struct cell *cell)
{
	for (word index = 0; index < cell->requests; index++) {
		struct call *call = &cell->calls[index];
		randomise(call->to, family.to_bytes(call));
		randomise(call->from, family.from_bytes(call));
		family.fill(call);
		family.arguments(call);
	}
}

static void flush_lines(const byte *at, word bytes)
{
	for (word line = (word)at & -LINE; line < (word)at + bytes; line += LINE)
		__asm__ volatile("clflush (%0)" : : "r"(line) : "memory");
}

static void flush_all(const struct cell *cell)
{
	for (word index = 0; index < cell->requests; index++) {
		flush_lines(cell->calls[index].to, family.to_bytes(&cell->calls[index]));
		flush_lines(cell->calls[index].from, family.from_bytes(&cell->calls[index]));
	}
	__asm__ volatile("mfence" : : : "memory");
}

/* Read each line that a call wrote. */
static word use(const struct call *call)
{
	word sum = 0;
	for (word offset = 0; offset < family.to_bytes(call); offset += LINE)
		sum += *(const volatile byte *)(call->to + offset);
	return sum;
}

static volatile word sink;

static word run_batch(routine *candidate, const struct call *const *order, word calls, int uses)
{
	word sum = 0, start = ticks();
	for (word index = 0; index < calls; index++) {
		const struct call *call = order[index];
		sum += candidate(call->argument[0], call->argument[1], call->argument[2], call->argument[3],
				 call->argument[4]);
		if (uses)
			sum += use(call);
	}
	word taken = ticks() - start;
	sink = sum;
	return taken;
}

/* In random order: each request once if their memory is cold or a call consumes it, else any of them, often. */
static word make_order(const struct cell *cell, const struct call **order)
{
	if (cell->mode != COLD && !family.consumes) {
		word calls = BATCH_BYTES / (cell->calls[0].size + CALL_BYTES);
		calls = calls < FEWEST_CALLS ? FEWEST_CALLS : calls > MOST_CALLS ? MOST_CALLS : calls;
		for (word index = 0; index < calls; index++)
			order[index] = &cell->calls[lab_random() % cell->requests];
		return calls;
	}
	for (word index = 0; index < cell->requests; index++) {
		word other = lab_random() % (index + 1);
		order[index] = order[other];
		order[other] = &cell->calls[index];
	}
	return cell->requests;
}

static void time_cell(struct cell *cell, word number, word known, byte *to, byte *from)
{
	const struct call *order[MOST_CALLS];
	word turns[known];
	double least[known];
	place(cell, to, from);
	refill(cell);
	for (word index = 0; index < known; index++) {
		turns[index] = index;
		least[index] = 1e300;
	}
	for (int batch = 0; batch <= BATCHES; batch++) {
		for (word index = known; index > 1; index--) {
			word other = lab_random() % index, kept = turns[index - 1];
			turns[index - 1] = turns[other];
			turns[other] = kept;
		}
		double before = ticks_per_cycle();
		for (word index = 0; index < known; index++) {
			word calls = make_order(cell, order);
			if (family.consumes)
				refill(cell);
			if (cell->mode == COLD)
				flush_all(cell);
			double taken = (double)run_batch(candidates[turns[index]], order, calls, cell->mode == USED);
			double after = ticks_per_cycle(), per_cycle = before < after ? before : after;
			double cycles = taken / per_cycle / (double)calls;
			before = after;
			/* The first batch warms up. */
			if (batch && cycles < least[turns[index]])
				least[turns[index]] = cycles;
		}
	}
	for (word index = 0; index < known; index++)
		printf("%lu %lu %.3f\n", number, index, least[index]);
}

void time_all(word known)
{
	static struct cell cell;
	stay_on_one_cpu();
	byte *to = NULL, *from = NULL;
	word to_bytes = 0, from_bytes = 0;
	for (word number = 0; read_cell(&cell); number++) {
		if (cell.requests * cell.to_stride > to_bytes || cell.requests * cell.from_stride > from_bytes) {
			if (to) {
				munmap(to, to_bytes);
				munmap(from, from_bytes);
			}
			to_bytes = cell.requests * cell.to_stride;
			from_bytes = cell.requests * cell.from_stride;
			to = pages(to_bytes);
			from = pages(from_bytes);
		}
		time_cell(&cell, number, known, to, from);
	}
}
