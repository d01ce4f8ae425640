// SPDX-License-Identifier: GPL-2.0-or-later
/* kstrtoull(): decimal and hexadecimal numbers of all lengths. */
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include "load.h"

enum { NUMBERS = 200, ROOM = 24 };

static char decimal[NUMBERS][ROOM], hexadecimal[NUMBERS][ROOM];

static void prepare(void)
{
	for (int i = 0; i < NUMBERS; i++) {
		int length = 1 + harness_random() % 15;
		for (int at = 0; at < length; at++) {
			decimal[i][at] = '0' + harness_random() % 10;
			hexadecimal[i][at] = "0123456789abcdefABCDEF"[harness_random() % 22];
		}
		decimal[i][length] = hexadecimal[i][length] = 0;
	}
}

static unsigned long run(char (*numbers)[ROOM], unsigned int base)
{
	unsigned long sum = 0;
	for (int i = 0; i < NUMBERS; i++) {
		unsigned long long value = 0;
		int refused = kstrtoull(numbers[i], base, &value);
		sum = harness_mix(sum, value + refused);
	}
	return sum;
}

static unsigned long run_decimal(void) { return run(decimal, 10); }
static unsigned long run_hexadecimal(void) { return run(hexadecimal, 16); }

const struct load loads[] = {
	{"kstrtoull-10", prepare, run_decimal},
	{"kstrtoull-16", prepare, run_hexadecimal},
	{},
};
