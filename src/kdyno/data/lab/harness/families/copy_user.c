// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * size_t copy_user(void *to, const void *from, size_t size): copies the bytes, and returns how many it did not copy. After
 * a fault these are the last ones, which are as they were. It copies none only if the first one can't be copied.
 */
#include "copies.h"

static word bytes(const struct call *call)
{
	return call->size;
}

static void fill(struct call *call)
{
	(void)call;
}

static void arguments(struct call *call)
{
	call->argument[0] = (word)call->to;
	call->argument[1] = (word)call->from;
	call->argument[2] = call->size;
}

static word define(struct call *call)
{
	for (word index = 0; index < call->size; index++)
		call->to[index] = call->from[index];
	return 0;
}

static word normalise(const struct call *call, word result)
{
	(void)call;
	return result;
}

static const char *judge_fault(const struct call *call, const struct fault *fault, word result)
{
	if (!result || result > call->size)
		return "the result after a fault is not a number of bytes that were not copied";
	word copied = call->size - result;
	if (!copied && is_copyable(fault, 0))
		return "nothing is copied, but the first byte can be";
	for (word index = 0; index < call->size; index++) {
		if (index < copied && !is_copyable(fault, index))
			return "a missing byte is reported as copied";
		if (is_missing(fault, 1, index))
			continue;
		if (call->to[index] != (index < copied ? call->from[index] : fault->before[index]))
			return index < copied ? "a byte that is reported as copied is not"
					      : "a byte behind the copied ones was written";
	}
	return 0;
}

const struct family family = {
	"copy_user", 1, 0, bytes, bytes, fill, arguments, define, normalise, judge_fault, 1,
};
