// SPDX-License-Identifier: GPL-2.0-or-later
/* glob_match(): names against patterns, half of which match. */
#include <linux/types.h>
#include <linux/glob.h>
#include "load.h"

enum { NAMES = 60, ROOM = 24 };

static char names[NAMES][ROOM];
static const char *const patterns[] = {"*a*b", "[a-c]*", "?d*[!e]f*", "*abc*", "b*", "*a?a*"};

static void prepare(void)
{
	for (int i = 0; i < NAMES; i++) {
		int length = 3 + harness_random() % (ROOM - 4);
		for (int at = 0; at < length; at++)
			names[i][at] = 'a' + harness_random() % 6;
		names[i][length] = 0;
	}
}

static unsigned long run(void)
{
	unsigned long sum = 0;
	for (int i = 0; i < NAMES; i++)
		for (unsigned int which = 0; which < sizeof(patterns) / sizeof(patterns[0]); which++)
			sum = harness_mix(sum, glob_match(patterns[which], names[i]));
	return sum;
}

const struct load loads[] = {
	{"glob_match", prepare, run},
	{},
};
