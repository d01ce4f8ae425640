// SPDX-License-Identifier: GPL-2.0-or-later
/* bin2hex() and hex2bin(). */
#include <linux/types.h>
#include <linux/kernel.h>
#include "load.h"

enum { BYTES = 1500 };

static unsigned char bytes[BYTES];
static char digits[2 * BYTES];

static void prepare(void)
{
	for (int i = 0; i < BYTES; i++)
		bytes[i] = harness_random();
	bin2hex(digits, bytes, BYTES);
}

static unsigned long run_bin2hex(void)
{
	return bin2hex(digits, bytes, BYTES) - digits;
}

static unsigned long run_hex2bin(void)
{
	return hex2bin(bytes, digits, BYTES);
}

static unsigned long check(void)
{
	return harness_mix(harness_digest(bytes, sizeof(bytes)), harness_digest(digits, sizeof(digits)));
}

const struct load loads[] = {
	{"bin2hex", prepare, run_bin2hex, check},
	{"hex2bin", prepare, run_hex2bin, check},
	{},
};
