// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * void sort(void *to, size_t size, size_t width, cmp_func_t compare, swap_func_t swap) of integers without a sign: the
 * size counts elements, and the offset chooses their width.
 */
#include "integers.h"

static word width_of(const struct call *call)
{
	return call->to_offset % 2 ? 4 : 8;
}

static word to_bytes(const struct call *call)
{
	return call->size * width_of(call);
}

static word from_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

/* A quarter of all arrays has many equal elements, a quarter is in order but for a few. */
static void fill(struct call *call)
{
	for (word index = 0; index < call->size && call->salt % 4 < 2; index++) {
		word value = call->salt % 4 ? lab_random() % 4 : lab_random() % 8 ? index : lab_random() % call->size;
		if (width_of(call) == 8)
			((word *)call->to)[index] = value;
		else
			((unsigned *)call->to)[index] = (unsigned)value;
	}
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = call->size;
	call->argument[2] = width_of(call);
	call->argument[3] = (word)(width_of(call) == 8 ? compare_words : compare_halves);
	call->argument[4] = 0;
}

static word define(struct call *call)
{
	for (word last = 1; last < call->size; last++)
		for (word index = last; index; index--) {
			if (width_of(call) == 8) {
				word *at = (word *)call->to + index, kept = at[0];
				if (at[-1] <= kept)
					break;
				at[0] = at[-1];
				at[-1] = kept;
			} else {
				unsigned *at = (unsigned *)call->to + index, kept = at[0];
				if (at[-1] <= kept)
					break;
				at[0] = at[-1];
				at[-1] = kept;
			}
		}
	return 0;
}

static word normalise(const struct call *call, word result)
{
	(void)call, (void)result;
	return 0;
}

const struct family family = {"sort", 8, 1, to_bytes, from_bytes, fill, arguments, define, normalise};
