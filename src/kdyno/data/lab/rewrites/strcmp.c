// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * strcmp by words where both are within a page, which need not end where the texts do, and else by bytes. The first byte
 * that is zero or differs decides.
 */
#include "rewrite.h"

#define STRCMP_ONES 0x0101010101010101UL
#define STRCMP_HIGHS 0x8080808080808080UL

int strcmp(const char *cs, const char *ct)
{
	const u8 *one = (const u8 *)cs, *other = (const u8 *)ct;
	unsigned long a, b, decides;
	u32 place;

	for (;; one += 8, other += 8) {
		if (unlikely((((unsigned long)one & (PAGE_SIZE - 1)) > PAGE_SIZE - 8) |
			     (((unsigned long)other & (PAGE_SIZE - 1)) > PAGE_SIZE - 8))) {
			for (place = 0; place < 8; place++) {
				if (one[place] != other[place])
					return one[place] < other[place] ? -1 : 1;
				if (!one[place])
					return 0;
			}
			continue;
		}
		a = *(const volatile unsigned long *)one;
		b = *(const volatile unsigned long *)other;
		decides = (a ^ b) | ((a - STRCMP_ONES) & ~a & STRCMP_HIGHS);
		if (decides)
			break;
	}
	place = (u32)__builtin_ctzl(decides) & 0x38;
	a = a >> place & 0xff;
	b = b >> place & 0xff;
	return a < b ? -1 : a > b;
}
