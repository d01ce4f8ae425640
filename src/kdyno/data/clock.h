// SPDX-License-Identifier: GPL-2.0-or-later
/* The time-stamp counter, and how many of its ticks a cycle of the processor takes now; without a C library. */

enum { BEAT = 3000, ATTEMPTS = 4 };

static inline unsigned long ticks(void)
{
	unsigned low, high;
	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (unsigned long)high << 32 | low;
}

static unsigned long one_beat(void)
{
	unsigned long start = ticks(), sum = 1;
	for (unsigned long turn = 0; turn < BEAT / 10; turn++)
		__asm__ volatile("add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
				 "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
				 : "+r"(sum) : "r"(turn));
	return ticks() - start;
}

/* Ticks that a chain of BEAT additions takes now: a cycle for each. */
static unsigned long beat(void)
{
	unsigned long least = ~0UL;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		unsigned long taken = one_beat();
		least = taken < least ? taken : least;
	}
	return least;
}
