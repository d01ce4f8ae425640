// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * __wsum csum_partial(const void *from, int size, __wsum sum): a number that is congruent to the sum of the 16-bit words
 * modulo 2^16 - 1, and zero only if all are zero. What it is folded to decides, in 16 bits.
 */
#include "lab.h"

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

static word first_sum(const struct call *call)
{
	static const word sums[] = {0, 1, 0xffff, 0xffffffff};
	word kind = call->salt % 8;
	return kind < 4 ? sums[kind] : call->salt >> 32;
}

static void arguments(struct call *call)
{
	/* An int and a u32: what the upper halves of their registers have doesn't count. */
	word above = call->salt << 32;
	call->argument[0] = (word)call->from;
	call->argument[1] = call->size | above;
	call->argument[2] = first_sum(call) | above;
}

static word define(struct call *call)
{
	word sum = first_sum(call);
	for (word index = 0; index < call->size; index++)
		sum += (word)call->from[index] << (index % 2 ? 8 : 0);
	return sum;
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	/* A routine returns 32 bits, the definition more. */
	word sum = result;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static word low_half(const struct call *call, word result)
{
	return normalise(call, result & 0xffffffff);
}

/* Fold the sum, so that both are of 32 bits. */
static word define_folded(struct call *call)
{
	return normalise(call, define(call));
}

const struct family family = {"csum_partial", 1, 0, to_bytes, from_bytes, fill, arguments, define_folded, low_half};
