// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * u64 siphash(const void *from, size_t size, const siphash_key_t *to): the key, which isn't written, is two words.
 * SipHash-2-4 (Aumasson and Bernstein, 2012), section 2, here byte for byte.
 */
#include "lab.h"

struct state {
	word v[4];
};

static word to_bytes(const struct call *call)
{
	(void)call;
	return 2 * sizeof(word);
}

static word from_bytes(const struct call *call)
{
	return call->size;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->from;
	call->argument[1] = call->size;
	call->argument[2] = (word)call->to;
}

static word word_at(const byte *at, word bytes)
{
	word value = 0;
	for (word index = 0; index < bytes; index++)
		value |= (word)at[index] << 8 * index;
	return value;
}

static word rotate(word value, word by)
{
	return value << by | value >> (64 - by);
}

/* Two halves, each of which adds one word to another, turns it, and takes the sum into it. */
static void half_round(word *a, word *b, word *c, word *d, word first, word second)
{
	*a += *b;
	*c += *d;
	*b = rotate(*b, first) ^ *a;
	*d = rotate(*d, second) ^ *c;
	*a = rotate(*a, 32);
}

static void rounds(struct state *state, word count)
{
	word *v = state->v;
	while (count--) {
		half_round(&v[0], &v[1], &v[2], &v[3], 13, 16);
		half_round(&v[2], &v[1], &v[0], &v[3], 17, 21);
	}
}

static void absorb(struct state *state, word message)
{
	state->v[3] ^= message;
	rounds(state, 2);
	state->v[0] ^= message;
}

static word define(struct call *call)
{
	static const byte text[] = "uespemosmodnarodarenegylsetybdet";
	struct state state;
	word place;
	for (word index = 0; index < 4; index++)
		state.v[index] = word_at(text + 8 * index, 8) ^ word_at(call->to + 8 * (index % 2), 8);
	for (place = 0; place + 8 <= call->size; place += 8)
		absorb(&state, word_at(call->from + place, 8));
	absorb(&state, call->size << 56 | word_at(call->from + place, call->size - place));
	state.v[2] ^= 0xff;
	rounds(&state, 4);
	return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	return result;
}

const struct family family = {"siphash", 1, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
