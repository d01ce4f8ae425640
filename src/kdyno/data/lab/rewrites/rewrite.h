/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words at any address, for routines that kdyno wrote. */
#ifndef KDYNO_REWRITE_H
#define KDYNO_REWRITE_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned long size_t;

#define UNALIGNED(type) struct { type value; } __attribute__((packed, may_alias))
#define LOAD(type, at) (((const UNALIGNED(type) *)(const void *)(at))->value)
#define STORE(type, at, stored) (((UNALIGNED(type) *)(void *)(at))->value = (stored))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

#endif
