// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * int strcmp(const char *to, const char *from): which of two texts has the larger byte where they differ first. Neither
 * is written. The size counts the equal bytes before the place that decides.
 */
#include "lab.h"

static word bytes(const struct call *call)
{
	return call->size + 1;
}

/* Half of the pairs are equal, a quarter differ in a bit of the last byte, in an eighth one of them is shorter. */
static void fill(struct call *call)
{
	for (word index = 0; index < call->size; index++) {
		if (!call->from[index])
			call->from[index] = (lab_random() & 1) ? 0x80 : 0x01;
		call->to[index] = call->from[index];
	}
	byte last = (byte)(call->salt >> 8);
	call->to[call->size] = call->from[call->size] = 0;
	switch (call->salt % 8) {
	case 0:
	case 1:
		call->from[call->size] = last;
		call->to[call->size] = last ^ (byte)(1 << (call->salt >> 16) % 8);
		break;
	case 2:
		call->from[call->size] = last;
		break;
	case 3:
		call->to[call->size] = last;
	}
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = (word)call->from;
}

static word define(struct call *call)
{
	word index = 0;
	while (call->to[index] && call->to[index] == call->from[index])
		index++;
	return call->to[index] < call->from[index] ? (word)-1 : call->to[index] > call->from[index];
}

/* Only the sign counts, of an int. */
static word normalise(const struct call *call, word result)
{
	int difference = (int)result;

	(void)call;
	return difference < 0 ? (word)-1 : difference > 0;
}

const struct family family = {"strcmp", 1, 0, bytes, bytes, fill, arguments, define, normalise};
