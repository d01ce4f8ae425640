// SPDX-License-Identifier: GPL-2.0-or-later
/* __bitmap_weight counts four words at once in bitmaps of more than sixteen: in shorter ones the rest costs too much. */
#include "rewrite.h"

unsigned int __bitmap_weight(const unsigned long *bitmap, unsigned int bits)
{
	unsigned long index = 0, words = bits / BITS_PER_LONG, rest = bits % BITS_PER_LONG;
	unsigned long a = 0, b = 0, c = 0, d = 0;

	if (words > 16)
		for (; words - index >= 4; index += 4) {
			a += hweight_long(bitmap[index]);
			b += hweight_long(bitmap[index + 1]);
			c += hweight_long(bitmap[index + 2]);
			d += hweight_long(bitmap[index + 3]);
		}
	for (; index < words; index++)
		a += hweight_long(bitmap[index]);
	if (rest)
		a += hweight_long(bitmap[index] & (~0UL >> (BITS_PER_LONG - rest)));
	return (unsigned int)(a + b + c + d);
}
