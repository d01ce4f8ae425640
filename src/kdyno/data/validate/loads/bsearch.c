// SPDX-License-Identifier: GPL-2.0-or-later
/* bsearch(): keys of which half are there, in a small and in a larger array. */
#include <linux/types.h>
#include <linux/bsearch.h>
#include "load.h"

enum { MOST = 4096, SMALL = 32, KEYS = 400 };

static unsigned int sorted[MOST], keys[KEYS];

static int by_value(const void *a, const void *b)
{
	unsigned int one = *(const unsigned int *)a, other = *(const unsigned int *)b;
	return one < other ? -1 : one > other;
}

static void prepare(unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		sorted[i] = 2 * i;
	for (int i = 0; i < KEYS; i++)
		keys[i] = harness_random() % (2 * size);
}

static unsigned long run(unsigned int size)
{
	unsigned long places = 0;
	for (int i = 0; i < KEYS; i++) {
		unsigned int *at = bsearch(&keys[i], sorted, size, sizeof(sorted[0]), by_value);
		places = harness_mix(places, at ? at - sorted : MOST);
	}
	return places;
}

static void prepare_small(void) { prepare(SMALL); }
static void prepare_large(void) { prepare(MOST); }
static unsigned long run_small(void) { return run(SMALL); }
static unsigned long run_large(void) { return run(MOST); }

const struct load loads[] = {
	{"bsearch-32", prepare_small, run_small},
	{"bsearch-4096", prepare_large, run_large},
	{},
};
