// SPDX-License-Identifier: GPL-2.0-or-later
/* sha256(), the generic one. */
#include <linux/types.h>
#include <crypto/sha2.h>
#include "load.h"

static unsigned char bytes[2000], digest[32];

static void prepare(void)
{
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = harness_random();
}

static unsigned long run(void)
{
	sha256(bytes, sizeof(bytes), digest);
	return 0;
}

static unsigned long check(void) { return harness_digest(digest, sizeof(digest)); }

const struct load loads[] = {
	{"sha256", prepare, run, check},
	{},
};
