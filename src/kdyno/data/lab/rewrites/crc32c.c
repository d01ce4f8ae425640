// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * crc32c by the instruction of SSE 4.2, which works on general registers. It has a latency of three cycles, and can begin
 * in each cycle: so three parts of a long text are summed at once. The sum of a part is moved over the next one by
 * tables, which kdyno makes.
 */
#include "rewrite.h"
#include "crc32c_tables.h"

static inline u64 add_word(u64 sum, u64 word)
{
	__asm__("crc32q %1, %0" : "+r"(sum) : "rm"(word));
	return sum;
}

static inline u32 add_byte(u32 sum, u8 added)
{
	__asm__("crc32b %1, %0" : "+r"(sum) : "rm"(added));
	return sum;
}

/* The sum as it is after as many zeros as the table is for. */
static inline u32 moved(const u32 (*table)[256], u32 sum)
{
	return table[0][sum & 0xff] ^ table[1][sum >> 8 & 0xff] ^ table[2][sum >> 16 & 0xff] ^ table[3][sum >> 24];
}

#define THREE_PARTS(bytes, table)                                                                     \
	while (size >= 3 * (bytes)) {                                                                 \
		u64 first = sum, second = 0, third = 0;                                               \
		for (const u8 *end = at + (bytes); at != end; at += 8) {                              \
			first = add_word(first, *(const u64 *)at);                                    \
			second = add_word(second, *(const u64 *)(at + (bytes)));                      \
			third = add_word(third, *(const u64 *)(at + 2 * (bytes)));                    \
		}                                                                                     \
		sum = moved(table, moved(table, (u32)first) ^ (u32)second) ^ (u32)third;              \
		at += 2 * (bytes);                                                                    \
		size -= 3 * (bytes);                                                                  \
	}

u32 crc32c(u32 sum, const void *from, size_t size)
{
	const u8 *at = from;
	u64 words = 0;

	THREE_PARTS(LONG_PART, long_part)
	THREE_PARTS(SHORT_PART, short_part)
	for (words = sum; size >= 8; at += 8, size -= 8)
		words = add_word(words, *(const u64 *)at);
	sum = (u32)words;
	for (; size; size--)
		sum = add_byte(sum, *at++);
	return sum;
}
