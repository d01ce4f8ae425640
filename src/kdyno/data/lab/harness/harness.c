// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times and proves the candidates of one family.
 *
 *   PROGRAM time SEED                    cells from standard input; of each cell and candidate: cycles of a call
 *   PROGRAM prove CANDIDATE LEAST MOST OFFSETS RANDOM MOST_RANDOM SLACK SECONDS SEED
 *
 * A cell is a line `warm|cold|used N`, followed by N lines `SIZE TO FROM`: sizes, and offsets of both addresses in their
 * pages. Status 2: wrong usage; 3: the system refused something; 4: a candidate is wrong, as the last line says.
 */
#define _GNU_SOURCE
#include "lab.h"
#include "../../clock.h"
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, LINE = 64, BATCHES = 5, MOST_CALLS = 512, FEWEST_CALLS = 16 };
enum { BATCH_BYTES = 1 << 16, CALL_BYTES = 32, MOST_REQUESTS = 64, MOST_SIZE = 1 << 20 };
enum { WRONG_USAGE = 2, REFUSED = 3, WRONG = 4 };

static word random_state;

/* splitmix64 (Steele, Lea, Flood, 2014). */
word lab_random(void)
{
	word mixed = random_state += 0x9e3779b97f4a7c15UL;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9UL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebUL;
	return mixed ^ mixed >> 31;
}

static void fail(const char *what)
{
	perror(what);
	exit(REFUSED);
}

/* Memory in pages of 4 kB: large pages would make a TLB's misses go away on some hosts only. */
static byte *pages(word bytes)
{
	byte *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		fail("mmap");
	madvise(start, bytes, MADV_NOHUGEPAGE);
	return start;
}

static word whole_pages(word bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void randomise(byte *at, word bytes)
{
	for (word done = 0; done < bytes; done += sizeof(word)) {
		word value = lab_random();
		memcpy(at + done, &value, bytes - done < sizeof(word) ? bytes - done : sizeof(word));
	}
}

/* -- time -- */

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

static void time_all(word known)
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

/* -- prove -- */

enum { SAVED = 6, GUARDED = 1 << 17, MARGIN = 256 };

struct registers {
	word before[SAVED], after[SAVED], flags, stack;
};

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
	"mov %rsp, %r10\n\tmov lab_stack(%rip), %rsp\n\tpushf\n\tpop %r11\n\tcld\n\t"
	"pop %rdx\n\t"
	"mov %rbx, 48(%rdx)\n\tmov %rbp, 56(%rdx)\n\tmov %r12, 64(%rdx)\n\tmov %r13, 72(%rdx)\n\t"
	"mov %r14, 80(%rdx)\n\tmov %r15, 88(%rdx)\n\tmov %r11, 96(%rdx)\n\t"
	"sub lab_stack(%rip), %r10\n\tmov %r10, 104(%rdx)\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n");
word lab_stack;

/* Memory with a page before and one behind it that nothing may touch. */
static byte *guarded(void)
{
	byte *start = pages(GUARDED + 2 * PAGE);
	if (mprotect(start, PAGE, PROT_NONE) || mprotect(start + PAGE + GUARDED, PAGE, PROT_NONE))
		fail("mprotect");
	return start + PAGE;
}

struct proof {
	routine *candidate;
	byte *to, *from, *shadow_to, *shadow_from;
	/* Readable bytes behind a call's memory that it may touch, before the guard. */
	word slack;
	word cases;
	const char *where;
	struct call call;
};

static struct proof proof;

static void say_wrong(const char *what)
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
	(void)context;
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

/* The address of `bytes` with an offset: as near as possible to the guard behind it, or to the one before it. */
static byte *beside_guard(byte *area, word bytes, word offset, int at_end)
{
	word period = family.aligned == 1 ? ALIGNMENTS : family.aligned, wanted = family.aligned == 1 ? offset : 0;
	if (!at_end)
		return area + wanted % period;
	word latest = GUARDED - bytes - proof.slack;
	return area + latest - (latest + period - wanted % period) % period;
}

/* Content of four kinds: carries and ends are where routines go wrong. */
static void content(byte *at, word bytes, word kind)
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

static word window(const byte *area, const byte *at, word bytes, byte **start)
{
	word first = (word)(at - area) < MARGIN ? 0 : (word)(at - area) - MARGIN;
	word last = (word)(at - area) + bytes + MARGIN;
	*start = (byte *)area + first;
	return (last > GUARDED ? GUARDED : last) - first;
}

static void compare(const char *what, const byte *is, const byte *should_be, word bytes, const byte *at)
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

static void prove_case(word size, word to_offset, word from_offset, int at_end, word kind)
{
	struct call *call = &proof.call;
	struct registers registers;
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

	for (word index = 0; index < SAVED; index++)
		registers.before[index] = lab_random();
	word result = family.normalise(call, lab_call(proof.candidate, call->argument, &registers));
	if (memcmp(registers.before, registers.after, sizeof(registers.before)))
		say_wrong("a register that a routine must leave alone changed");
	if (registers.stack)
		say_wrong("the stack pointer changed");
	if (registers.flags & 0x400)
		say_wrong("the direction flag is set");
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

static void prove(word candidate, word least, word most, word offsets, word cases, word most_random,
		  word slack, word seconds)
{
	double end = now() + (double)seconds;
	struct call probe = {.size = 1, .to = NULL};
	word to_offsets = family.to_bytes(&probe) ? offsets : 1, from_offsets = family.from_bytes(&probe) ? offsets : 1;
	proof = (struct proof){.candidate = candidates[candidate], .slack = slack};
	proof.to = guarded();
	proof.from = guarded();
	proof.shadow_to = guarded();
	proof.shadow_from = guarded();
	catch_faults(seconds);
	for (word size = least; size <= most; size++) {
		for (word to = 0; to < to_offsets; to++)
			for (word from = 0; from < from_offsets; from++)
				for (int at_end = 0; at_end < 2; at_end++)
					prove_case(size, to, from, at_end, lab_random() % 4);
		if (now() > end) {
			printf("out of time: size %lu of %lu\n", size, most);
			return;
		}
	}
	word exhaustive = proof.cases;
	for (word index = 0; index < cases; index++) {
		word size = least == most ? most : lab_random() % (most_random + 1);
		prove_case(size, lab_random() % offsets, lab_random() % offsets, (int)(lab_random() % 2), lab_random() % 4);
		if (now() > end) {
			printf("out of time: case %lu of %lu\n", index, cases);
			return;
		}
	}
	printf("equal: %lu %lu\n", exhaustive, proof.cases - exhaustive);
}

int main(int count, char **word_of)
{
	word known = 0, number[16] = {0};
	while (candidates[known])
		known++;
	for (int index = 2; index < count && index < 16; index++)
		number[index] = strtoul(word_of[index], NULL, 10);
	if (count == 3 && !strcmp(word_of[1], "time")) {
		random_state = number[2];
		time_all(known);
	} else if (count == 11 && !strcmp(word_of[1], "prove") && number[2] < known && number[5] <= ALIGNMENTS) {
		random_state = number[10];
		prove(number[2], number[3], number[4], number[5], number[6], number[7], number[8], number[9]);
	} else {
		return WRONG_USAGE;
	}
	return fflush(stdout) ? REFUSED : 0;
}
