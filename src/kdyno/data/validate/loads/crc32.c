// SPDX-License-Identifier: GPL-2.0-or-later
/* crc32_le() and __crc32c_le(): a page, and many headers. */
#include <linux/types.h>
#include <linux/crc32.h>
#include "load.h"

static unsigned char bytes[4096];

static void prepare(void)
{
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = harness_random();
}

static unsigned long run_page(void)
{
	unsigned int crc = ~0u;
	for (int again = 0; again < 4; again++)
		crc = crc32_le(crc, bytes, sizeof(bytes));
	return crc;
}

static unsigned long run_headers(void)
{
	unsigned int crc = ~0u;
	for (int at = 0; at < 4000; at += 40)
		crc = crc32_le(crc, bytes + at, 37);
	return crc;
}

const struct load loads[] = {
	{"crc32-page", prepare, run_page},
	{"crc32-37", prepare, run_headers},
	{},
};
