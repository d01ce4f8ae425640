// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * __wsum csum_partial_copy_generic(const void *from, void *to, int size): copies the bytes, and returns a number that is
 * congruent to the sum of their 16-bit words modulo 2^16 - 1. It is never zero: that is what a fault returns. Behind a
 * fault each byte is either copied or as it was.
 */
#include "copies.h"

static word bytes(const struct call *call)
{
	return call->size;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->from;
	call->argument[1] = (word)call->to;
	/* An int: what the upper half of its register has doesn't count. */
	call->argument[2] = call->size | call->salt << 32;
}

static word define(struct call *call)
{
	word sum = 0xffff;
	for (word index = 0; index < call->size; index++) {
		call->to[index] = call->from[index];
		sum += (word)call->from[index] << (index % 2 ? 8 : 0);
	}
	return sum;
}

static word normalise(const struct call *call, word result)
{
	word sum = result & 0xffffffff;
	(void)call;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static const char *judge_fault(const struct call *call, const struct fault *fault, word result)
{
	if ((unsigned)result)
		return "the result after a fault is not 0";
	for (word index = 0; index < call->size; index++) {
		if (is_missing(fault, 1, index) || call->to[index] == fault->before[index])
			continue;
		if (is_missing(fault, 0, index) || call->to[index] != call->from[index])
			return "a written byte is neither the copied one nor the previous one";
	}
	return 0;
}

const struct family family = {
	"csum_and_copy", 1, 0, bytes, bytes, fill, arguments, define, normalise, judge_fault,
};
