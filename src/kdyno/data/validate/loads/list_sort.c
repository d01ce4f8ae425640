// SPDX-License-Identifier: GPL-2.0-or-later
/* list_sort(): a list in random order, one that is nearly sorted, and one of few different keys. */
#include <linux/types.h>
#include <linux/list.h>
#include <linux/list_sort.h>
#include "load.h"

enum { NODES = 600 };

static struct node { struct list_head list; unsigned long key, place; } nodes[NODES];
static struct list_head head;

static int by_key(void *priv, const struct list_head *a, const struct list_head *b)
{
	return list_entry(a, struct node, list)->key > list_entry(b, struct node, list)->key;
}

static void linked(unsigned long (*key)(unsigned long place))
{
	INIT_LIST_HEAD(&head);
	for (unsigned long place = 0; place < NODES; place++) {
		nodes[place].key = key(place);
		nodes[place].place = place;
		list_add_tail(&nodes[place].list, &head);
	}
}

static unsigned long random_key(unsigned long place) { return harness_random(); }
static unsigned long near_key(unsigned long place) { return harness_random() % 16 ? place : harness_random() % NODES; }
static unsigned long few_keys(unsigned long place) { return harness_random() % 8; }

static void prepare_random(void) { linked(random_key); }
static void prepare_near(void) { linked(near_key); }
static void prepare_few(void) { linked(few_keys); }

static unsigned long run(void)
{
	list_sort(NULL, &head, by_key);
	return 0;
}

static unsigned long check(void)
{
	struct node *node;
	unsigned long order = 0;
	list_for_each_entry(node, &head, list)
		order = harness_mix(order, node->place);
	return order;
}

const struct load loads[] = {
	{"list_sort-random", prepare_random, run, check},
	{"list_sort-near", prepare_near, run, check},
	{"list_sort-few", prepare_few, run, check},
	{},
};
