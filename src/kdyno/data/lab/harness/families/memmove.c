// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * void *memmove(void *to, const void *from, size_t size) within one piece of memory: the distance is up to 63 bytes in
 * either direction, so that places of more bytes overlap.
 */
#include "lab.h"

enum { FAR = 63, MIDDLE = 32, MOST = 1 << 20 };

/* From the read place to the written one: chosen by the second offset, or random without one. */
static long distance(const struct call *call)
{
	return call->from_offset ? MIDDLE - (long)call->from_offset : (long)(call->salt % (2 * FAR + 1)) - FAR;
}

static word to_bytes(const struct call *call)
{
	long far = distance(call);

	return call->size + (word)(far < 0 ? -far : far);
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

static byte *written(const struct call *call)
{
	return call->to + (distance(call) > 0 ? distance(call) : 0);
}

static byte *read(const struct call *call)
{
	return call->to + (distance(call) < 0 ? -distance(call) : 0);
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)written(call);
	call->argument[1] = (word)read(call);
	call->argument[2] = call->size;
}

static word define(struct call *call)
{
	static byte kept[MOST];

	for (word index = 0; index < call->size; index++)
		kept[index] = read(call)[index];
	for (word index = 0; index < call->size; index++)
		written(call)[index] = kept[index];
	return (word)written(call);
}

static word normalise(const struct call *call, word result)
{
	return result - (word)call->to;
}

const struct family family = {"memmove", 1, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
