// SPDX-License-Identifier: GPL-2.0-or-later
/* The population count for CPUs without an instruction for it. */
#include <linux/types.h>
#include "load.h"

enum { WORDS = 500 };

unsigned long __sw_hweight64(u64 word);

static u64 words[WORDS];

static void prepare(void)
{
	for (int i = 0; i < WORDS; i++)
		words[i] = harness_random();
}

static unsigned long run(void)
{
	unsigned long sum = 0;
	for (int again = 0; again < 8; again++)
		for (int i = 0; i < WORDS; i++)
			sum += __sw_hweight64(words[i] + again);
	return sum;
}

const struct load loads[] = {
	{"hweight64", prepare, run},
	{},
};
