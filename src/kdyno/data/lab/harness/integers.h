/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Comparisons of integers without a sign, of eight and of four bytes, for families that take a function. */
#ifndef KDYNO_INTEGERS_H
#define KDYNO_INTEGERS_H

#include "lab.h"

static int compare_words(const void *one, const void *other)
{
	word a = *(const word *)one, b = *(const word *)other;
	return a < b ? -1 : a > b;
}

static int compare_halves(const void *one, const void *other)
{
	unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;
	return a < b ? -1 : a > b;
}

#endif
