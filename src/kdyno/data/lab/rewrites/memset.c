// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memset in words of eight bytes, the last of which overlaps the one before: no loop of bytes. From REP_FROM bytes on it
 * is `rep stosb`.
 */
#include "rewrite.h"

#ifndef REP_FROM
#define REP_FROM (~0UL)
#endif

void *memset(void *to, int value, size_t size)
{
	u8 *out = to, *end = out + size;
	u64 word = (u8)value * 0x0101010101010101UL;

	if (size < 8) {
		if (size >= 4) {
			STORE(u32, out, (u32)word);
			STORE(u32, end - 4, (u32)word);
		} else if (size) {
			out[0] = (u8)word;
			out[size / 2] = (u8)word;
			end[-1] = (u8)word;
		}
		return to;
	}
	if (size <= 16) {
		STORE(u64, out, word);
		STORE(u64, end - 8, word);
		return to;
	}
	if (size >= REP_FROM) {
		__asm__ volatile("rep stosb" : "+D"(out), "+c"(size) : "a"(word) : "memory");
		return to;
	}
	while (end - out > 32) {
		STORE(u64, out, word);
		STORE(u64, out + 8, word);
		STORE(u64, out + 16, word);
		STORE(u64, out + 24, word);
		out += 32;
	}
	/* 1 to 32 bytes are left, and at least 17 were there. */
	if (end - out > 16) {
		STORE(u64, out, word);
		STORE(u64, out + 8, word);
	}
	STORE(u64, end - 16, word);
	STORE(u64, end - 8, word);
	return to;
}
