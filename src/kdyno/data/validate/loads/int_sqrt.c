// SPDX-License-Identifier: GPL-2.0-or-later
/* int_sqrt() of numbers of all sizes. */
#include <linux/types.h>
#include <linux/kernel.h>
#include "load.h"

enum { NUMBERS = 300 };

unsigned long int_sqrt(unsigned long x);

static unsigned long numbers[NUMBERS];

static void prepare(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = harness_random() >> harness_random() % 60;
}

static unsigned long run(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < NUMBERS; i++)
		sum = harness_mix(sum, int_sqrt(numbers[i]));
	return sum;
}

const struct load loads[] = {
	{"int_sqrt", prepare, run},
	{},
};
