// SPDX-License-Identifier: GPL-2.0-or-later
/* sort(): words, and larger elements that are exchanged word by word. */
#include <linux/types.h>
#include <linux/sort.h>
#include "load.h"

enum { WORDS = 500, RECORDS = 300 };

static unsigned long words[WORDS];
static struct record { unsigned int key, rest[5]; } records[RECORDS];

static int by_value(const void *a, const void *b)
{
	const unsigned long *one = a, *other = b;
	return *one < *other ? -1 : *one > *other;
}

static int by_key(const void *a, const void *b)
{
	const struct record *one = a, *other = b;
	return one->key < other->key ? -1 : one->key > other->key;
}

static void prepare_words(void)
{
	for (int i = 0; i < WORDS; i++)
		words[i] = harness_random();
}

static void prepare_records(void)
{
	for (int i = 0; i < RECORDS; i++)
		records[i] = (struct record){.key = harness_random(), .rest = {i}};
}

static unsigned long run_words(void)
{
	sort(words, WORDS, sizeof(words[0]), by_value, NULL);
	return 0;
}

static unsigned long run_records(void)
{
	sort(records, RECORDS, sizeof(records[0]), by_key, NULL);
	return 0;
}

static unsigned long check_words(void) { return harness_digest(words, sizeof(words)); }
static unsigned long check_records(void) { return harness_digest(records, sizeof(records)); }

const struct load loads[] = {
	{"sort-words", prepare_words, run_words, check_words},
	{"sort-records", prepare_records, run_records, check_records},
	{},
};
