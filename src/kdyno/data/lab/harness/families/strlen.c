// SPDX-License-Identifier: GPL-2.0-or-later
/* size_t strlen(const char *from): the size is the length, without the zero at the end. */
#include "lab.h"

static word to_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static word from_bytes(const struct call *call)
{
	return call->size + 1;
}

static void fill(struct call *call)
{
	/* Bytes that tricks take for a zero: 0x80 and 0x01. */
	for (word index = 0; index < call->size; index++)
		if (!call->from[index])
			call->from[index] = (lab_random() & 1) ? 0x80 : 0x01;
	call->from[call->size] = 0;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->from;
}

static word define(struct call *call)
{
	word length = 0;
	while (call->from[length])
		length++;
	return length;
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	return result;
}

const struct family family = {"strlen", 1, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
