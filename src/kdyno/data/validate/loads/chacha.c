// SPDX-License-Identifier: GPL-2.0-or-later
/* chacha_block_generic(), which /dev/random is made of. */
#include <linux/types.h>
#include <crypto/chacha.h>
#include "load.h"

static u32 state[16];
static u8 stream[64];

static void prepare(void)
{
	for (int i = 0; i < 16; i++)
		state[i] = harness_random();
}

static unsigned long run(void)
{
	unsigned long sum = 0;
	for (int block = 0; block < 60; block++) {
		chacha_block_generic(state, stream, 20);
		sum = harness_mix(sum, stream[block]);
	}
	return sum;
}

static unsigned long check(void) { return harness_digest(stream, sizeof(stream)); }

const struct load loads[] = {
	{"chacha20", prepare, run, check},
	{},
};
