/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the harness and a family of routines know of each other. */
#ifndef KDYNO_LAB_H
#define KDYNO_LAB_H

typedef unsigned long word;
typedef unsigned char byte;

/* One call of a routine. The places of its memory are set by the harness, the arguments by the family. */
struct call {
	/* Memory that is written, and memory that is only read. */
	byte *to, *from;
	/* Bytes, or what else the family counts. */
	word size;
	/* Offsets that the harness asked for, below ALIGNMENTS: of addresses, or what else the family makes of them. */
	word to_offset, from_offset;
	/* Random bits of this call, for arguments that aren't addresses. */
	word salt;
	/* More arguments than a routine has do no harm: they are in registers that a call may change. */
	word argument[5];
};

/* Bytes that are missing of the memory that a call writes or reads. */
struct fault {
	int is_written;
	/* From the byte `first` to the one before `end`, which are missing. */
	word first, end;
	/* What the written memory had before the call. */
	const byte *before;
};

enum { ALIGNMENTS = 64 };

struct family {
	const char *name;
	/* The alignment of addresses whatever the offsets are; 1: the offsets are those of addresses. */
	word aligned;
	/* True if a routine destroys its input, so that each call needs a new one. */
	int consumes;
	/* Extents of memory that a call may touch, in bytes; 0 if it has no such argument. */
	word (*to_bytes)(const struct call *call);
	word (*from_bytes)(const struct call *call);
	/* Changes random content to what the routine needs, such as the end of a text. */
	void (*fill)(struct call *call);
	/* Sets the arguments. */
	void (*arguments)(struct call *call);
	/* What the routine does by its definition, in the plainest way; returns what it returns. */
	word (*define)(struct call *call);
	/* The part of a result that counts, independent of addresses. */
	word (*normalise)(const struct call *call, word result);
	/* Returns what is wrong with a call that met this fault, or null; null for routines that recover none. */
	const char *(*judge_fault)(const struct call *call, const struct fault *fault, word result);
	/* True if inline assembler calls the routine: it changes no register but rax, rcx, rsi and rdi. */
	int keeps_others;
};

extern const struct family family;

/* The candidates of this program; the last is null. Made by kdyno. */
typedef word routine(word, word, word, word, word);
extern routine *const candidates[];

/* 64 random bits. */
word lab_random(void);

#endif
