// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * strlen by aligned words: such a word is within one page, so that the bytes of it before and behind the text can be
 * read, too.
 */
#include "rewrite.h"

#define STRLEN_ONES 0x0101010101010101UL
#define STRLEN_HIGHS 0x8080808080808080UL

/* A word whose lowest set bit is in the first byte that is zero; zero if there is none. */
static inline unsigned long strlen_zeros(unsigned long word)
{
	return (word - STRLEN_ONES) & ~word & STRLEN_HIGHS;
}

size_t strlen(const char *s)
{
	unsigned long offset = (unsigned long)s & 7, before = ~(~0UL << offset * 8);
	const unsigned long *at = (const unsigned long *)((unsigned long)s - offset);
	unsigned long zeros = strlen_zeros(*(const volatile unsigned long *)at | before);

	while (!zeros)
		zeros = strlen_zeros(*(const volatile unsigned long *)++at);
	return (unsigned long)at + ((unsigned long)__builtin_ctzl(zeros) >> 3) - (unsigned long)s;
}
