/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a load is: a function of the kernel's with data to work on. Loads are compiled as the kernel's code is. */
#ifndef KDYNO_LOAD_H
#define KDYNO_LOAD_H

struct load {
	const char *name;
	/* Makes all data of the next turn anew, of harness_random() alone; not measured. */
	void (*prepare)(void);
	/* The work, some ten to a hundred microseconds of it; returns what the functions returned, put together. */
	unsigned long (*run)(void);
	/* A digest of what the work left in memory; null where it leaves nothing. Not measured. */
	unsigned long (*check)(void);
};

/* The loads of a program; the last has no name. */
extern const struct load loads[];

/* 64 random bits, the same in each program for the same turn. */
unsigned long harness_random(void);

/* A digest of bytes. */
unsigned long harness_digest(const void *at, unsigned long size);

/* One value after another, put together so that their order counts. */
#define harness_mix(sum, value) (((sum) ^ (unsigned long)(value)) * 0x9e3779b97f4a7c15UL)

/* The value, of which the compiler knows nothing: what is computed of it isn't computed ahead. */
#define harness_opaque(value) ({ typeof(value) value_ = (value); __asm__ volatile("" : "+r"(value_)); value_; })

#endif
