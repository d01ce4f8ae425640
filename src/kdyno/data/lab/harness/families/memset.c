// SPDX-License-Identifier: GPL-2.0-or-later
/* void *memset(void *to, int value, size_t size): only the lowest byte of the value counts. */
#include "lab.h"

static word to_bytes(const struct call *call)
{
	return call->size;
}

static word from_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = call->salt;
	call->argument[2] = call->size;
}

static word define(struct call *call)
{
	for (word index = 0; index < call->size; index++)
		call->to[index] = (byte)call->salt;
	return (word)call->to;
}

static word normalise(const struct call *call, word result)
{
	return result - (word)call->to;
}

const struct family family = {"memset", 1, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
