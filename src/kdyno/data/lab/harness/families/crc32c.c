// SPDX-License-Identifier: GPL-2.0-or-later
/* u32 crc32c(u32 sum, const void *from, size_t size): the remainder by Castagnoli's polynomial, bits reversed. */
#include "lab.h"

enum { POLYNOMIAL = (int)0x82f63b78 };

static word to_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static word from_bytes(const struct call *call)
{
	return call->size;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = call->salt;
	call->argument[1] = (word)call->from;
	call->argument[2] = call->size;
}

static word define(struct call *call)
{
	unsigned sum = (unsigned)call->salt;
	for (word index = 0; index < call->size; index++) {
		sum ^= call->from[index];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? (unsigned)POLYNOMIAL : 0);
	}
	return sum;
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	return result & 0xffffffff;
}

const struct family family = {"crc32c", 1, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
