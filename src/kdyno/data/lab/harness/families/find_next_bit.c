// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * unsigned long find_next_bit(const unsigned long *from, unsigned long bits, unsigned long start): the first bit from
 * `start` on that is set, or `bits`. The size is the distance from `start` to that bit, the offset is `start`.
 */
#include "lab.h"

enum { BITS = 64 };

static word start_of(const struct call *call)
{
	return call->from_offset % BITS;
}

static word words_of(const struct call *call)
{
	return (start_of(call) + call->size) / BITS + 1;
}

/* All bits of the words, or fewer: the set bit is the last one, or behind them; or the search starts behind them. */
static word bits_of(const struct call *call)
{
	word set = start_of(call) + call->size;
	switch (call->salt % 8) {
	case 0:
		return set + 1;
	case 1:
		return set;
	case 2:
		return start_of(call) / 2;
	case 3:
		return start_of(call) + call->size / 2;
	default:
		return words_of(call) * BITS;
	}
}

static word to_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static word from_bytes(const struct call *call)
{
	return words_of(call) * sizeof(word);
}

static void fill(struct call *call)
{
	word set = start_of(call) + call->size;
	for (word bit = start_of(call); bit < set; bit++)
		call->from[bit / 8] &= (byte)~(1 << bit % 8);
	call->from[set / 8] |= (byte)(1 << set % 8);
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->from;
	call->argument[1] = bits_of(call);
	call->argument[2] = start_of(call);
}

static word define(struct call *call)
{
	word bits = bits_of(call);
	for (word bit = start_of(call); bit < bits; bit++)
		if (call->from[bit / 8] >> bit % 8 & 1)
			return bit;
	return bits;
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	return result;
}

const struct family family = {"find_next_bit", 8, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
