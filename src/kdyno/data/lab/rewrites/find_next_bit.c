// SPDX-License-Identifier: GPL-2.0-or-later
/* _find_next_bit looks at four words at once where there are so many. */
#include "rewrite.h"

unsigned long _find_next_bit(const unsigned long *addr, unsigned long nbits, unsigned long start)
{
	unsigned long word, bit, index = start / BITS_PER_LONG, words = (nbits + BITS_PER_LONG - 1) / BITS_PER_LONG;

	if (unlikely(start >= nbits))
		return nbits;
	word = addr[index] >> start % BITS_PER_LONG;
	if (word) {
		bit = start + (unsigned long)__builtin_ctzl(word);
		return bit < nbits ? bit : nbits;
	}
	index++;
	while (words - index >= 4 && !(addr[index] | addr[index + 1] | addr[index + 2] | addr[index + 3]))
		index += 4;
	for (; index < words; index++)
		if (addr[index]) {
			bit = index * BITS_PER_LONG + (unsigned long)__builtin_ctzl(addr[index]);
			return bit < nbits ? bit : nbits;
		}
	return nbits;
}
