// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * csum_partial in four chains of additions with carry, 128 bytes an iteration. The last bytes are read as
 * the word that begins with them if that is within their page, else one by one: nothing can fault.
 */
#include "rewrite.h"

/* Add four words to a chain; its own carry goes back into it. */
#define CSUM_FOUR(sum, at)                                                                            \
	__asm__("addq 0(%1), %0\n\tadcq 8(%1), %0\n\tadcq 16(%1), %0\n\tadcq 24(%1), %0\n\tadcq $0, %0" \
		: "+r"(sum) : "r"(at), "m"(*(const u8(*)[32])(at)) : "cc")

static inline u64 csum_add_word(u64 sum, u64 added)
{
	__asm__("addq %1, %0\n\tadcq $0, %0" : "+r"(sum) : "rm"(added) : "cc");
	return sum;
}

/* 1 to 7 bytes as a word, with zeros above. */
static inline u64 csum_few_bytes(const u8 *at, u32 size)
{
	u32 above = (8 - size) * 8;
	u64 word = 0;

	if (likely(((unsigned long)at & (PAGE_SIZE - 1)) <= PAGE_SIZE - 8))
		return *(const u64 *)at << above >> above;
	while (size--)
		word = word << 8 | at[size];
	return word;
}

__wsum csum_partial(const void *buff, int len, __wsum sum)
{
	const u8 *at = buff;
	u32 size = (u32)len;
	u64 a = (__force u32)sum, b = 0, c = 0, d = 0;

	if (size >= 128) {
		do {
			CSUM_FOUR(a, at);
			CSUM_FOUR(b, at + 32);
			CSUM_FOUR(c, at + 64);
			CSUM_FOUR(d, at + 96);
			at += 128;
			size -= 128;
		} while (size >= 128);
		a = csum_add_word(csum_add_word(a, b), csum_add_word(c, d));
		b = 0;
	}
	if (size & 64) {
		CSUM_FOUR(a, at);
		CSUM_FOUR(b, at + 32);
		at += 64;
	}
	if (size & 32) {
		CSUM_FOUR(b, at);
		at += 32;
	}
	if (size & 16) {
		__asm__("addq 0(%1), %0\n\tadcq 8(%1), %0\n\tadcq $0, %0"
			: "+r"(a) : "r"(at), "m"(*(const u8(*)[16])at) : "cc");
		at += 16;
	}
	if (size & 8) {
		b = csum_add_word(b, *(const u64 *)at);
		at += 8;
	}
	size &= 7;
	if (size)
		a = csum_add_word(a, csum_few_bytes(at, size));
	a = csum_add_word(a, b);
	a = (a >> 32) + (u32)a;
	a = (a >> 32) + (u32)a;
	return (__force __wsum)(u32)a;
}
