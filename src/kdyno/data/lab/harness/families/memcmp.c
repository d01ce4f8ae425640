// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * int memcmp(const void *to, const void *from, size_t size): which of two places has the larger byte where they differ
 * first. Neither is written.
 */
#include "lab.h"

static word bytes(const struct call *call)
{
	return call->size;
}

/* Seven of eight pairs are equal but for one byte, or equal. */
static void fill(struct call *call)
{
	if (call->salt % 8 == 0)
		return;
	for (word index = 0; index < call->size; index++)
		call->to[index] = call->from[index];
	if (call->size && call->salt % 8 < 4)
		call->to[(call->salt >> 8) % call->size] ^= (byte)(1 << call->salt / 8 % 8);
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = (word)call->from;
	call->argument[2] = call->size;
}

static word define(struct call *call)
{
	for (word index = 0; index < call->size; index++)
		if (call->to[index] != call->from[index])
			return call->to[index] < call->from[index] ? (word)-1 : 1;
	return 0;
}

/* Only the sign counts, of an int. */
static word normalise(const struct call *call, word result)
{
	int difference = (int)result;

	(void)call;
	return difference < 0 ? (word)-1 : difference > 0;
}

const struct family family = {"memcmp", 1, 0, bytes, bytes, fill, arguments, define, normalise};
