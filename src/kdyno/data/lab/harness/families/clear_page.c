// SPDX-License-Identifier: GPL-2.0-or-later
/* void clear_page(void *to) */
#include "lab.h"

enum { PAGE = 4096 };

static word to_bytes(const struct call *call)
{
	(void)call;
	return PAGE;
}

static word from_bytes(const struct call *call)
{
	(void)call;
	return 0;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
}

static word define(struct call *call)
{
	for (word index = 0; index < PAGE; index++)
		call->to[index] = 0;
	return 0;
}

static word normalise(const struct call *call, word result)
{
	(void)call, (void)result;
	return 0;
}

const struct family family = {"clear_page", PAGE, 0, to_bytes, from_bytes, fill, arguments, define, normalise};
