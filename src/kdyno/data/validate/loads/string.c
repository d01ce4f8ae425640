// SPDX-License-Identifier: GPL-2.0-or-later
/* The generic string functions, on names as a kernel has them and on longer texts. */
#include <linux/types.h>
#include <linux/string.h>
#include "load.h"

enum { TEXTS = 200, ROOM = 64, LONG = 4000 };

static char texts[TEXTS][ROOM], others[TEXTS][ROOM], long_text[LONG + 8], long_copy[LONG + 8];

static void prepare_texts(void)
{
	for (int i = 0; i < TEXTS; i++) {
		int length = 2 + harness_random() % (harness_random() % 2 ? 12 : ROOM - 4);
		for (int at = 0; at < length; at++)
			texts[i][at] = 'a' + harness_random() % 26;
		memset(texts[i] + length, 0, ROOM - length);
		memcpy(others[i], texts[i], ROOM);
		if (harness_random() % 2)
			others[i][harness_random() % length] = '.';
	}
}

static void prepare_long(void)
{
	for (int at = 0; at < LONG; at++)
		long_text[at] = 'a' + harness_random() % 26;
	long_text[LONG] = 0;
	memcpy(long_copy, long_text, sizeof(long_text));
}

#define OVER_TEXTS(name, call)                          \
	static unsigned long name(void)                 \
	{                                               \
		unsigned long sum = 0;                  \
		for (int i = 0; i < TEXTS; i++)         \
			sum = harness_mix(sum, (call)); \
		return sum;                             \
	}

static int sign(int difference) { return (difference > 0) - (difference < 0); }
static unsigned long place(const char *found, const char *start) { return found ? found - start : ~0UL; }

OVER_TEXTS(run_strlen, strlen(texts[i]))
OVER_TEXTS(run_strcmp, sign(strcmp(texts[i], others[i])))
OVER_TEXTS(run_strncmp, sign(strncmp(texts[i], others[i], 8)))
OVER_TEXTS(run_memcmp, sign(memcmp(texts[i], others[i], ROOM)))
OVER_TEXTS(run_memchr, place(memchr(texts[i], 'e', ROOM), texts[i]))
OVER_TEXTS(run_strchr, place(strchr(texts[i], 'e'), texts[i]))
OVER_TEXTS(run_strscpy, sized_strscpy(others[i], texts[i], 32))

static unsigned long run_long_strlen(void) { return strlen(harness_opaque(&long_text[0])); }
static unsigned long run_long_memcmp(void)
{
	unsigned long sum = 0;
	for (int again = 0; again < 8; again++)
		sum = harness_mix(sum, memcmp(harness_opaque(&long_text[0]), long_copy, LONG) == 0);
	return sum;
}
static unsigned long run_strstr(void) { return place(strstr(long_text, "zzzzz"), long_text); }

static unsigned long check_others(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < TEXTS; i++)
		sum = harness_mix(sum, harness_digest(others[i], strlen(others[i])));
	return sum;
}

const struct load loads[] = {
	{"strlen", prepare_texts, run_strlen},
	{"strcmp", prepare_texts, run_strcmp},
	{"strncmp", prepare_texts, run_strncmp},
	{"memcmp", prepare_texts, run_memcmp},
	{"memchr", prepare_texts, run_memchr},
	{"strchr", prepare_texts, run_strchr},
	{"strscpy", prepare_texts, run_strscpy, check_others},
	{"strlen-4000", prepare_long, run_long_strlen},
	{"memcmp-4000", prepare_long, run_long_memcmp},
	{"strstr", prepare_long, run_strstr},
	{},
};
