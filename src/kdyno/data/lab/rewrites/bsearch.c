// SPDX-License-Identifier: GPL-2.0-or-later
/* bsearch whose next half depends on a comparison by arithmetic: only that of an element found is mispredicted. */
#include "rewrite.h"

void *bsearch(const void *key, const void *base, size_t num, size_t size, cmp_func_t cmp)
{
	const u8 *first = base;

	while (num) {
		const u8 *middle = first + (num >> 1) * size;
		int order = cmp(key, middle);
		unsigned long above = -(unsigned long)(order > 0);

		if (!order)
			return (void *)middle;
		__asm__("" : "+r"(above));
		first += ((unsigned long)(middle - first) + size) & above;
		num = (num + above) >> 1;
	}
	return (void *)0;
}
