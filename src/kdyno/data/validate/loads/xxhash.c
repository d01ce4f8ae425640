// SPDX-License-Identifier: GPL-2.0-or-later
/* xxHash of pages and of short keys. */
#include <linux/types.h>
#include <linux/xxhash.h>
#include "load.h"

static unsigned char bytes[4096];

static void prepare(void)
{
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = harness_random();
}

static unsigned long run_page64(void)
{
	unsigned long hash = 0;
	for (int again = 0; again < 8; again++)
		hash = xxh64(bytes, sizeof(bytes), hash);
	return hash;
}

static unsigned long run_page32(void)
{
	unsigned long hash = 0;
	for (int again = 0; again < 8; again++)
		hash = xxh32(bytes, sizeof(bytes), hash);
	return hash;
}

static unsigned long run_keys(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < 300; i++)
		sum = harness_mix(sum, xxh64(bytes + i, 4 + bytes[i] % 40, 0));
	return sum;
}

const struct load loads[] = {
	{"xxh64-page", prepare, run_page64},
	{"xxh32-page", prepare, run_page32},
	{"xxh64-keys", prepare, run_keys},
	{},
};
