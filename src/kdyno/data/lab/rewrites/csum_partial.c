// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * csum_partial in four chains of additions with carry, 128 bytes an iteration. The last bytes are read as
 * the word that begins with them if that is within their page, else one by one: nothing can fault.
 */
#include "rewrite.h"

/* Add four words to a chain; its own carry goes back into it. */
#define ADD_FOUR(sum, at)                                                                                     \
	__asm__("addq 0(%1), %0\n\tadcq 8(%1), %0\n\tadcq 16(%1), %0\n\tadcq 24(%1), %0\n\tadcq $0, %0"       \
		: "+r"(sum) : "r"(at), "m"(*(const u8(*)[32])(at)) : "cc")

static inline u64 add_with_carry(u64 sum, u64 added)
{
	__asm__("addq %1, %0\n\tadcq $0, %0" : "+r"(sum) : "rm"(added) : "cc");
	return sum;
}

#define PAGE 4096UL

/* 1 to 7 bytes as a word, with zeros above. */
static inline u64 few_bytes(const u8 *at, u32 size)
{
	u32 above = (8 - size) * 8;
	u64 word = 0;

	if (likely(((u64)at & (PAGE - 1)) <= PAGE - 8))
		return LOAD(u64, at) << above >> above;
	while (size--)
		word = word << 8 | at[size];
	return word;
}

u32 csum_partial(const void *from, int signed_size, u32 first)
{
	const u8 *at = from;
	u32 size = (u32)signed_size;
	u64 a = first, b = 0, c = 0, d = 0;

	if (size >= 128) {
		do {
			ADD_FOUR(a, at);
			ADD_FOUR(b, at + 32);
			ADD_FOUR(c, at + 64);
			ADD_FOUR(d, at + 96);
			at += 128;
			size -= 128;
		} while (size >= 128);
		a = add_with_carry(add_with_carry(a, b), add_with_carry(c, d));
		b = 0;
	}
	if (size & 64) {
		ADD_FOUR(a, at);
		ADD_FOUR(b, at + 32);
		at += 64;
	}
	if (size & 32) {
		ADD_FOUR(b, at);
		at += 32;
	}
	if (size & 16) {
		__asm__("addq 0(%1), %0\n\tadcq 8(%1), %0\n\tadcq $0, %0"
			: "+r"(a) : "r"(at), "m"(*(const u8(*)[16])at) : "cc");
		at += 16;
	}
	if (size & 8) {
		b = add_with_carry(b, LOAD(u64, at));
		at += 8;
	}
	size &= 7;
	if (size)
		a = add_with_carry(a, few_bytes(at, size));
	a = add_with_carry(a, b);
	a = (a >> 32) + (u32)a;
	a = (a >> 32) + (u32)a;
	return (u32)a;
}
