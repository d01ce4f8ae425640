// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * strlen by aligned words: such a word is within one page, so that the bytes of it before and behind the text can be
 * read, too.
 */
#include "rewrite.h"

#define ONES 0x0101010101010101UL
#define HIGHS 0x8080808080808080UL

/* A word whose lowest set bit is in the first byte that is zero; zero if there is none. */
static inline u64 zero_bytes(u64 word)
{
	return (word - ONES) & ~word & HIGHS;
}

size_t strlen(const char *text)
{
	u64 offset = (u64)text & 7, before = ~(~0UL << offset * 8);
	const u64 *at = (const u64 *)((u64)text - offset);
	u64 zeros = zero_bytes(*(const volatile u64 *)at | before);

	while (!zeros)
		zeros = zero_bytes(*(const volatile u64 *)++at);
	return (u64)at + ((u64)__builtin_ctzl(zeros) >> 3) - (u64)text;
}
