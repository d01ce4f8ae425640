// SPDX-License-Identifier: GPL-2.0-or-later
/* Red-black trees: random insertions, erasing in another order, and a walk. */
#include <linux/types.h>
#include <linux/rbtree.h>
#include "load.h"

enum { NODES = 400 };

static struct node { struct rb_node rb; unsigned long key; } nodes[NODES];
static unsigned int order[NODES];
static struct rb_root root;

static void insert(struct node *node)
{
	struct rb_node **link = &root.rb_node, *parent = NULL;
	while (*link) {
		parent = *link;
		link = node->key < rb_entry(parent, struct node, rb)->key ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&node->rb, parent, link);
	rb_insert_color(&node->rb, &root);
}

static void prepare_nodes(void)
{
	root = RB_ROOT;
	for (int i = 0; i < NODES; i++)
		nodes[i].key = harness_random();
}

static unsigned long run_insert(void)
{
	for (int i = 0; i < NODES; i++)
		insert(&nodes[i]);
	return 0;
}

static void prepare_tree(void)
{
	prepare_nodes();
	run_insert();
	for (int i = 0; i < NODES; i++)
		order[i] = i;
	for (int i = NODES - 1; i > 0; i--) {
		int other = harness_random() % (i + 1);
		unsigned int kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
}

static unsigned long run_erase(void)
{
	for (int i = 0; i < NODES - 8; i++)
		rb_erase(&nodes[order[i]].rb, &root);
	return 0;
}

static unsigned long run_walk(void)
{
	unsigned long keys = 0;
	for (int again = 0; again < 4; again++)
		for (struct rb_node *at = rb_first(&root); at; at = rb_next(at))
			keys = harness_mix(keys, rb_entry(at, struct node, rb)->key);
	return keys;
}

/* The shape of the tree counts, not only its order. */
static unsigned long check(void)
{
	unsigned long shape = 0;
	for (struct rb_node *at = rb_first(&root); at; at = rb_next(at)) {
		shape = harness_mix(shape, rb_entry(at, struct node, rb)->key);
		shape = harness_mix(shape, (at->rb_left ? 1 : 0) + (at->rb_right ? 2 : 0));
	}
	return shape;
}

const struct load loads[] = {
	{"rbtree-insert", prepare_nodes, run_insert, check},
	{"rbtree-erase", prepare_tree, run_erase, check},
	{"rbtree-walk", prepare_tree, run_walk, check},
	{},
};
