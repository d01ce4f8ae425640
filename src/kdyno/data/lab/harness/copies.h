/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What families of copies that recover faults share. */
#ifndef KDYNO_COPIES_H
#define KDYNO_COPIES_H

#include "lab.h"

static inline int is_missing(const struct fault *fault, int is_written, word index)
{
	return fault->is_written == is_written && index >= fault->first && index < fault->end;
}

/* Whether a byte can be copied: neither side of it is missing. */
static inline int is_copyable(const struct fault *fault, word index)
{
	return !is_missing(fault, 0, index) && !is_missing(fault, 1, index);
}

#endif
