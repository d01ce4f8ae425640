// SPDX-License-Identifier: GPL-2.0-or-later
/* find_next_bit that looks at four words at once where there are so many. */
#include "rewrite.h"

#define BITS 64

u64 find_next_bit(const u64 *from, u64 bits, u64 start)
{
	u64 word, index = start / BITS, words = (bits + BITS - 1) / BITS;

	if (unlikely(start >= bits))
		return bits;
	word = from[index] >> start % BITS;
	if (word) {
		u64 bit = start + (u64)__builtin_ctzl(word);
		return bit < bits ? bit : bits;
	}
	index++;
	while (words - index >= 4 && !(from[index] | from[index + 1] | from[index + 2] | from[index + 3]))
		index += 4;
	for (; index < words; index++)
		if (from[index]) {
			u64 bit = index * BITS + (u64)__builtin_ctzl(from[index]);
			return bit < bits ? bit : bits;
		}
	return bits;
}
