// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Few elements of four or eight bytes are sorted by insertion, which needs fewer comparisons that can't be predicted.
 * Only elements in the array are compared, as a caller may rely on their addresses.
 */
#include "rewrite.h"

#define FEW_ELEMENTS 24

#define INSERT_ALL(type, base, num, cmp_func)							\
	do {											\
		type *end = (type *)(base) + (num);						\
		for (type *next = (type *)(base) + 1; next < end; next++)			\
			for (type *at = next; at > (type *)(base) && cmp_func(at - 1, at) > 0; at--) {	\
				type kept = at[0];						\
				at[0] = at[-1];							\
				at[-1] = kept;							\
			}									\
	} while (0)

void sort(void *base, size_t num, size_t size,
	  cmp_func_t cmp_func,
	  swap_func_t swap_func)
{
	struct wrapper w = {
		.cmp  = cmp_func,
		.swap = swap_func,
	};

	if (num <= FEW_ELEMENTS && !swap_func && size == 8) {
		INSERT_ALL(u64, base, num, cmp_func);
		return;
	}
	if (num <= FEW_ELEMENTS && !swap_func && size == 4) {
		INSERT_ALL(u32, base, num, cmp_func);
		return;
	}
	return sort_r(base, num, size, _CMP_WRAPPER, SWAP_WRAPPER, &w);
}
