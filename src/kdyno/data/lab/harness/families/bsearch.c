// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * void *bsearch(const void *to, const void *from, size_t size, size_t width, cmp_func_t compare): the element that equals
 * the key at `to`, which isn't written, or none. Elements are integers without a sign, in order, and no two are equal.
 * The offset chooses their width.
 */
#include "integers.h"

static word width_of(const struct call *call)
{
	return call->from_offset % 2 ? 4 : 8;
}

static word to_bytes(const struct call *call)
{
	(void)call;
	return sizeof(word);
}

static word from_bytes(const struct call *call)
{
	return call->size * width_of(call);
}

static word element(const struct call *call, const byte *array, word index)
{
	return width_of(call) == 8 ? ((const word *)array)[index] : ((const unsigned *)array)[index];
}

/* Odd numbers in order, with distances of two to eight; half of the keys are one of them, the others are even. */
static void fill(struct call *call)
{
	word last = 1, wanted = call->size ? (call->salt >> 8) % call->size : 0;

	*(word *)call->to = 0;
	for (word index = 0; index < call->size; index++) {
		last += 2 + 2 * (lab_random() % 4);
		if (width_of(call) == 8)
			((word *)call->from)[index] = last;
		else
			((unsigned *)call->from)[index] = (unsigned)last;
		if (index == wanted)
			*(word *)call->to = call->salt % 2 ? last : last + 1 - 2 * (call->salt >> 1 & 1);
	}
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = (word)call->from;
	call->argument[2] = call->size;
	call->argument[3] = width_of(call);
	call->argument[4] = (word)(width_of(call) == 8 ? compare_words : compare_halves);
}

static word define(struct call *call)
{
	word key = element(call, call->to, 0);
	for (word index = 0; index < call->size; index++)
		if (element(call, call->from, index) == key)
			return (word)call->from + index * width_of(call);
	return 0;
}

/* The place of the element, without the address of the array; zero if there is none. */
static word normalise(const struct call *call, word result)
{
	return result ? result - (word)call->from + 1 : 0;
}

const struct family family = {"bsearch", 8, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
