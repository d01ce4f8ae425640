// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memcmp by words: the last one overlaps the one before, and up to seven bytes are two words of four or single bytes.
 * In the order of bytes of the memory, words that differ say which is larger.
 */
#include "rewrite.h"

static inline int memcmp_words(unsigned long one, unsigned long other)
{
	return __builtin_bswap64(one) < __builtin_bswap64(other) ? -1 : 1;
}

int memcmp(const void *cs, const void *ct, size_t count)
{
	const u8 *one = cs, *other = ct;
	size_t place;

	if (count >= 8) {
		for (place = 0; place < count - 8; place += 8) {
			unsigned long a = *(const unsigned long *)(one + place), b = *(const unsigned long *)(other + place);

			if (a != b)
				return memcmp_words(a, b);
		}
		one += count - 8;
		other += count - 8;
		if (*(const unsigned long *)one != *(const unsigned long *)other)
			return memcmp_words(*(const unsigned long *)one, *(const unsigned long *)other);
		return 0;
	}
	if (count >= 4) {
		u32 a = *(const u32 *)one, b = *(const u32 *)other;

		if (a == b) {
			a = *(const u32 *)(one + count - 4);
			b = *(const u32 *)(other + count - 4);
		}
		if (a != b)
			return __builtin_bswap32(a) < __builtin_bswap32(b) ? -1 : 1;
		return 0;
	}
	for (place = 0; place < count; place++)
		if (one[place] != other[place])
			return one[place] - other[place];
	return 0;
}
