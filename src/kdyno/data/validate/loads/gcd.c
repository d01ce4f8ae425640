// SPDX-License-Identifier: GPL-2.0-or-later
/* gcd() of random pairs: branches that nobody predicts. */
#include <linux/types.h>
#include <linux/gcd.h>
#include "load.h"

enum { PAIRS = 200 };

static unsigned long pairs[PAIRS][2];

static void prepare(void)
{
	for (int i = 0; i < PAIRS; i++) {
		pairs[i][0] = harness_random() >> 32;
		pairs[i][1] = harness_random() >> 40;
	}
}

static unsigned long run(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < PAIRS; i++)
		sum = harness_mix(sum, gcd(pairs[i][0], pairs[i][1]));
	return sum;
}

const struct load loads[] = {
	{"gcd", prepare, run},
	{},
};
