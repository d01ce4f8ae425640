// SPDX-License-Identifier: GPL-2.0-or-later
/* SipHash as networking uses it: names of all lengths, two words, three half words. */
#include <linux/types.h>
#include <linux/siphash.h>
#include "load.h"

enum { ITEMS = 200 };

static unsigned char bytes[ITEMS + 64];
static siphash_key_t key;
static hsiphash_key_t short_key;

static void prepare(void)
{
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = harness_random();
	key = (siphash_key_t){{harness_random(), harness_random()}};
	short_key = (hsiphash_key_t){{harness_random(), harness_random()}};
}

static unsigned long run_names(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < ITEMS; i++)
		sum = harness_mix(sum, siphash(bytes + i, 3 + bytes[i] % 48, &key));
	return sum;
}

static unsigned long run_words(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < ITEMS; i++)
		sum = harness_mix(sum, siphash_2u64(sum, i, &key));
	return sum;
}

static unsigned long run_halves(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < ITEMS; i++)
		sum = harness_mix(sum, hsiphash_3u32(bytes[i], i, 7, &short_key));
	return sum;
}

const struct load loads[] = {
	{"siphash-names", prepare, run_names},
	{"siphash-2u64", prepare, run_words},
	{"hsiphash-3u32", prepare, run_halves},
	{},
};
