// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memcpy in words of eight bytes. Up to 32 bytes it has no loop: it loads the words of the beginning and those of the
 * end, which may overlap, before it stores any. Longer copies are blocks of 32 bytes, the last of which overlaps the one
 * before. From REP_FROM bytes on it is `rep movsb`. Up to REP_UP_TO bytes it is so, too, without another branch: sizes that
 * change cost mispredictions, but for microcode.
 */
#include "rewrite.h"

#ifndef REP_FROM
#define REP_FROM (~0UL)
#endif
#ifndef REP_UP_TO
#define REP_UP_TO 0
#endif

void *memcpy(void *to, const void *from, size_t size)
{
	u8 *out = to, *out_end = out + size;
	const u8 *in = from, *in_end = in + size;

	if (REP_UP_TO && likely(size <= REP_UP_TO || size >= REP_FROM)) {
		__asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(size) : : "memory");
		return to;
	}
	if (size <= 16) {
		if (size >= 8) {
			u64 first = LOAD(u64, in), last = LOAD(u64, in_end - 8);
			STORE(u64, out, first);
			STORE(u64, out_end - 8, last);
		} else if (size >= 4) {
			u32 first = LOAD(u32, in), last = LOAD(u32, in_end - 4);
			STORE(u32, out, first);
			STORE(u32, out_end - 4, last);
		} else if (size) {
			u8 first = in[0], middle = in[size / 2], last = in_end[-1];
			out[0] = first;
			out[size / 2] = middle;
			out_end[-1] = last;
		}
		return to;
	}
	if (size <= 32) {
		u64 a = LOAD(u64, in), b = LOAD(u64, in + 8), y = LOAD(u64, in_end - 16), z = LOAD(u64, in_end - 8);
		STORE(u64, out, a);
		STORE(u64, out + 8, b);
		STORE(u64, out_end - 16, y);
		STORE(u64, out_end - 8, z);
		return to;
	}
	if (size >= REP_FROM) {
		__asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(size) : : "memory");
		return to;
	}
	while (out_end - out > 32) {
		u64 a = LOAD(u64, in), b = LOAD(u64, in + 8), c = LOAD(u64, in + 16), d = LOAD(u64, in + 24);
		STORE(u64, out, a);
		STORE(u64, out + 8, b);
		STORE(u64, out + 16, c);
		STORE(u64, out + 24, d);
		in += 32;
		out += 32;
	}
	u64 w = LOAD(u64, in_end - 32), x = LOAD(u64, in_end - 24), y = LOAD(u64, in_end - 16), z = LOAD(u64, in_end - 8);
	STORE(u64, out_end - 32, w);
	STORE(u64, out_end - 24, x);
	STORE(u64, out_end - 16, y);
	STORE(u64, out_end - 8, z);
	return to;
}
