/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hweight_long as asm/arch_hweight.h has it after patching: with these registers. The kernel's routines get it, too. */
#ifndef KDYNO_HWEIGHT_H
#define KDYNO_HWEIGHT_H

static inline unsigned long hweight_long(unsigned long word)
{
	unsigned long count;
	__asm__("popcntq %1, %0" : "=a"(count) : "D"(word) : "cc");
	return count;
}

#endif
