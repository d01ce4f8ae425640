// SPDX-License-Identifier: GPL-2.0-or-later
/* unsigned int bitmap_weight(const unsigned long *from, unsigned int size): how many of the first `size` bits are set. */
#include "lab.h"

enum { BITS = 64 };

static word to_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static word from_bytes(const struct call *call)
{
	return (call->size + BITS - 1) / BITS * sizeof(word);
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	/* An unsigned int: what the upper half of its register has doesn't count. */
	call->argument[0] = (word)call->from;
	call->argument[1] = call->size | call->salt << 32;
}

static word define(struct call *call)
{
	word count = 0;
	for (word bit = 0; bit < call->size; bit++)
		count += call->from[bit / 8] >> bit % 8 & 1;
	return count;
}

/* An unsigned int. */
static word normalise(const struct call *call, word result)
{
	(void)call;
	return result & 0xffffffff;
}

const struct family family = {"bitmap_weight", 8, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
