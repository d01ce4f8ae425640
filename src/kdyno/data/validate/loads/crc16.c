// SPDX-License-Identifier: GPL-2.0-or-later
/* crc16(): a kilobyte, byte by byte. */
#include <linux/types.h>
#include <linux/crc16.h>
#include "load.h"

static unsigned char bytes[1024];

static void prepare(void)
{
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = harness_random();
}

static unsigned long run(void)
{
	unsigned int crc = 0;
	for (int again = 0; again < 4; again++)
		crc = crc16(crc, bytes, sizeof(bytes));
	return crc;
}

const struct load loads[] = {
	{"crc16", prepare, run},
	{},
};
