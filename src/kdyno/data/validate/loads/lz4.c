// SPDX-License-Identifier: GPL-2.0-or-later
/* LZ4 as zram uses it: pages of text and of small numbers, one way and back. */
#include <linux/types.h>
#include <linux/string.h>
#include <linux/lz4.h>
#include "load.h"

enum { PAGE = 4096 };

static char page[PAGE], packed[2 * PAGE], unpacked[PAGE], memory[LZ4_MEM_COMPRESS] __attribute__((aligned(16)));
static int packed_size;

/* Words of a small vocabulary, the shorter ones more often. */
static void prepare_text(void)
{
	for (int at = 0; at < PAGE;) {
		unsigned long word = harness_random() % (1 + harness_random() % 120);
		for (unsigned long letter = 0; letter < 2 + word % 7 && at < PAGE; letter++)
			page[at++] = 'a' + word * (letter + 3) % 26;
		if (at < PAGE)
			page[at++] = ' ';
	}
}

static void prepare_numbers(void)
{
	for (int at = 0; at < PAGE; at++)
		page[at] = at % 8 < 2 ? harness_random() % 64 : 0;
}

static unsigned long run_compress(void)
{
	packed_size = LZ4_compress_default(page, packed, PAGE, sizeof(packed), memory);
	return packed_size;
}

static void prepare_packed_text(void)
{
	prepare_text();
	run_compress();
}

static void prepare_packed_numbers(void)
{
	prepare_numbers();
	run_compress();
}

static unsigned long run_decompress(void)
{
	unsigned long sum = 0;
	for (int again = 0; again < 4; again++)
		sum = harness_mix(sum, LZ4_decompress_safe(packed, unpacked, packed_size, PAGE));
	return sum;
}

static unsigned long check_packed(void) { return harness_digest(packed, packed_size); }
static unsigned long check_unpacked(void)
{
	return memcmp(page, unpacked, PAGE) ? ~0UL : harness_digest(unpacked, PAGE);
}

const struct load loads[] = {
	{"lz4_compress-text", prepare_text, run_compress, check_packed},
	{"lz4_compress-numbers", prepare_numbers, run_compress, check_packed},
	{"lz4_decompress-text", prepare_packed_text, run_decompress, check_unpacked},
	{"lz4_decompress-numbers", prepare_packed_numbers, run_decompress, check_unpacked},
	{},
};
