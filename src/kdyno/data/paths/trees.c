// SPDX-License-Identifier: GPL-2.0
/*
 * Trees and tables: they are filled with random keys, each of which is found
 * again and removed, in other orders than that of the filling.
 */
#include <linux/idr.h>
#include <linux/jhash.h>
#include <linux/maple_tree.h>
#include <linux/rbtree.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "kdyno_paths.h"

#define MAX_COUNT	1024

struct node {
	u32 key;
	struct rb_node rb;
	struct rhash_head rhash;
};

static struct node nodes[MAX_COUNT];
static u32 places[MAX_COUNT];
static u32 find_order[MAX_COUNT];
static u32 remove_order[MAX_COUNT];

static DEFINE_XARRAY(xarray);
static DEFINE_IDR(idr);
static struct rb_root root = RB_ROOT;
static struct maple_tree maple = MTREE_INIT(maple, 0);
static struct rhashtable table;

/* Keys that differ: the low bits count, below random ones. */
static int prepare(const struct kdyno_path *path)
{
	unsigned int i;

	kdyno_shuffle(find_order, path->count);
	kdyno_shuffle(remove_order, path->count);
	kdyno_shuffle(places, path->count);
	for (i = 0; i < path->count; i++)
		nodes[i].key = kdyno_below(1024) * MAX_COUNT + places[i];
	return 0;
}

static int run_xarray(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		void *old = xa_store(&xarray, nodes[i].key, &nodes[i], GFP_KERNEL);

		if (xa_is_err(old))
			return xa_err(old);
	}
	for (i = 0; i < path->count; i++) {
		struct node *node = &nodes[find_order[i]];

		if (xa_load(&xarray, node->key) != node)
			return -ENOENT;
	}
	for (i = 0; i < path->count; i++)
		xa_erase(&xarray, nodes[remove_order[i]].key);
	return 0;
}

static void teardown_xarray(const struct kdyno_path *path)
{
	xa_destroy(&xarray);
}

static int run_maple(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		u32 key = nodes[i].key;
		int error = mtree_store_range(&maple, key, key, &nodes[i],
					      GFP_KERNEL);

		if (error)
			return error;
	}
	for (i = 0; i < path->count; i++) {
		struct node *node = &nodes[find_order[i]];

		if (mtree_load(&maple, node->key) != node)
			return -ENOENT;
	}
	for (i = 0; i < path->count; i++)
		mtree_erase(&maple, nodes[remove_order[i]].key);
	return 0;
}

static void teardown_maple(const struct kdyno_path *path)
{
	mtree_destroy(&maple);
}

static bool less(struct rb_node *left, const struct rb_node *right)
{
	return rb_entry(left, struct node, rb)->key <
	       rb_entry(right, struct node, rb)->key;
}

static int compare(const void *key, const struct rb_node *node)
{
	u32 left = *(const u32 *)key;
	u32 right = rb_entry(node, struct node, rb)->key;

	return left < right ? -1 : left > right;
}

static int run_rbtree(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		rb_add(&nodes[i].rb, &root, less);
	for (i = 0; i < path->count; i++) {
		struct node *node = &nodes[find_order[i]];

		if (rb_find(&node->key, &root, compare) != &node->rb)
			return -ENOENT;
	}
	for (i = 0; i < path->count; i++)
		rb_erase(&nodes[remove_order[i]].rb, &root);
	return 0;
}

/* The table's own seed is random: leave it out, so that chains repeat. */
static u32 hash(const void *key, u32 length, u32 seed)
{
	return jhash(key, length, 0);
}

static const struct rhashtable_params parameters = {
	.key_len = sizeof(u32),
	.key_offset = offsetof(struct node, key),
	.head_offset = offsetof(struct node, rhash),
	.nelem_hint = MAX_COUNT,
	.hashfn = hash,
};

static int setup_rhashtable(const struct kdyno_path *path)
{
	return rhashtable_init(&table, &parameters);
}

static int run_rhashtable(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		int error = rhashtable_insert_fast(&table, &nodes[i].rhash,
						   parameters);

		if (error)
			return error;
	}
	for (i = 0; i < path->count; i++) {
		struct node *node = &nodes[find_order[i]];

		if (rhashtable_lookup_fast(&table, &node->key, parameters) != node)
			return -ENOENT;
	}
	for (i = 0; i < path->count; i++)
		rhashtable_remove_fast(&table, &nodes[remove_order[i]].rhash,
				       parameters);
	return 0;
}

static void teardown_rhashtable(const struct kdyno_path *path)
{
	rhashtable_destroy(&table);
}

static int run_idr(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		int id = idr_alloc(&idr, &nodes[i], 0, 0, GFP_KERNEL);

		if (id < 0)
			return id;
	}
	for (i = 0; i < path->count; i++) {
		if (!idr_find(&idr, find_order[i]))
			return -ENOENT;
	}
	for (i = 0; i < path->count; i++)
		idr_remove(&idr, remove_order[i]);
	return 0;
}

static void teardown_idr(const struct kdyno_path *path)
{
	idr_destroy(&idr);
}

#define ROW(_name, _operation, _count, _setup, _run, _teardown)		\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.count = _count,					\
		.library = true,					\
		.setup = _setup,					\
		.prepare = prepare,					\
		.run = _run,						\
		.teardown = _teardown,					\
	}

static const struct kdyno_path rows[] = {
	ROW("xarray", "random index of 1,024 stored, loaded and erased",
	    1024, NULL, run_xarray, teardown_xarray),
	ROW("maple_tree", "random index of 256 stored, loaded and erased",
	    256, NULL, run_maple, teardown_maple),
	ROW("rbtree", "random key of 1,024 added, found and erased",
	    1024, NULL, run_rbtree, NULL),
	ROW("rhashtable", "random key of 1,024 inserted, found and removed",
	    1024, setup_rhashtable, run_rhashtable, teardown_rhashtable),
	ROW("idr", "number of 1,024 allocated, found and removed",
	    1024, NULL, run_idr, teardown_idr),
	{ }
};

const struct kdyno_group kdyno_trees = { "trees", rows };
