/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What routines that kdyno wrote use of a kernel's headers, for compiling them alone: in a kernel source they are put
 * among its own functions. Words may be read at any address, as x86 kernels do.
 */
#ifndef KDYNO_REWRITE_H
#define KDYNO_REWRITE_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned long size_t;
typedef u32 __wsum;
typedef int (*cmp_func_t)(const void *a, const void *b);
typedef void (*swap_func_t)(void *a, void *b, int size);

#include "hweight.h"

#define __force
#define BITS_PER_LONG 64
#define PAGE_SIZE 4096UL
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

#endif
