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

#define MAX_COUNT	4096
#define MAX_BATCH	1024

struct node {
	u32 key;
	struct rb_node rb;
	struct rhash_head rhash;
};

/**
 * struct batch - so many new nodes, and where they are in the order of search
 *	and removal
 */
struct batch {
	struct node *nodes;
	const u32 *find;
	const u32 *remove;
	u32 size;
};

/**
 * struct tree - a kind of tree, which is filled and emptied batch by batch
 */
struct tree {
	u32 batch;
	int (*run)(const struct batch *batch);
};

static struct node nodes[MAX_COUNT];
static u32 find_order[MAX_COUNT];
static u32 remove_order[MAX_COUNT];

static DEFINE_XARRAY(xarray);
static DEFINE_IDR(idr);
static struct rb_root root = RB_ROOT;
static struct maple_tree maple = MTREE_INIT(maple, 0);
static struct rhashtable table;

/* Keys that differ within a batch: the low bits count, below random ones. */
static int prepare(const struct kdyno_path *path)
{
	const struct tree *tree = path->argument;
	static u32 places[MAX_BATCH];
	unsigned int done, i;

	for (done = 0; done < path->count; done += tree->batch) {
		kdyno_shuffle(find_order + done, tree->batch);
		kdyno_shuffle(remove_order + done, tree->batch);
		kdyno_shuffle(places, tree->batch);
		for (i = 0; i < tree->batch; i++)
			nodes[done + i].key = kdyno_below(1024) * MAX_BATCH +
					      places[i];
	}
	return 0;
}

static int run(const struct kdyno_path *path)
{
	const struct tree *tree = path->argument;
	unsigned int done;
	int error = 0;

	for (done = 0; done < path->count && !error; done += tree->batch) {
		const struct batch batch = {
			.nodes = nodes + done,
			.find = find_order + done,
			.remove = remove_order + done,
			.size = tree->batch,
		};

		error = tree->run(&batch);
	}
	return error;
}

static int run_xarray(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->size; i++) {
		void *old = xa_store(&xarray, batch->nodes[i].key, &batch->nodes[i], GFP_KERNEL);

		if (xa_is_err(old))
			return xa_err(old);
	}
	for (i = 0; i < batch->size; i++) {
		struct node *node = &batch->nodes[batch->find[i]];

		if (xa_load(&xarray, node->key) != node)
			return -ENOENT;
	}
	for (i = 0; i < batch->size; i++)
		xa_erase(&xarray, batch->nodes[batch->remove[i]].key);
	return 0;
}

static void teardown_xarray(const struct kdyno_path *path)
{
	xa_destroy(&xarray);
}

static int run_maple(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->size; i++) {
		u32 key = batch->nodes[i].key;
		int error = mtree_store_range(&maple, key, key, &batch->nodes[i],
					      GFP_KERNEL);

		if (error)
			return error;
	}
	for (i = 0; i < batch->size; i++) {
		struct node *node = &batch->nodes[batch->find[i]];

		if (mtree_load(&maple, node->key) != node)
			return -ENOENT;
	}
	for (i = 0; i < batch->size; i++)
		mtree_erase(&maple, batch->nodes[batch->remove[i]].key);
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

static int run_rbtree(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->size; i++)
		rb_add(&batch->nodes[i].rb, &root, less);
	for (i = 0; i < batch->size; i++) {
		struct node *node = &batch->nodes[batch->find[i]];

		if (rb_find(&node->key, &root, compare) != &node->rb)
			return -ENOENT;
	}
	for (i = 0; i < batch->size; i++)
		rb_erase(&batch->nodes[batch->remove[i]].rb, &root);
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
	.nelem_hint = MAX_BATCH,
	.hashfn = hash,
};

static int setup_rhashtable(const struct kdyno_path *path)
{
	return rhashtable_init(&table, &parameters);
}

static int run_rhashtable(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->size; i++) {
		int error = rhashtable_insert_fast(&table, &batch->nodes[i].rhash,
						   parameters);

		if (error)
			return error;
	}
	for (i = 0; i < batch->size; i++) {
		struct node *node = &batch->nodes[batch->find[i]];

		if (rhashtable_lookup_fast(&table, &node->key, parameters) != node)
			return -ENOENT;
	}
	for (i = 0; i < batch->size; i++)
		rhashtable_remove_fast(&table, &batch->nodes[batch->remove[i]].rhash,
				       parameters);
	return 0;
}

static void teardown_rhashtable(const struct kdyno_path *path)
{
	rhashtable_destroy(&table);
}

static int run_idr(const struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->size; i++) {
		int id = idr_alloc(&idr, &batch->nodes[i], 0, 0, GFP_KERNEL);

		if (id < 0)
			return id;
	}
	for (i = 0; i < batch->size; i++) {
		if (!idr_find(&idr, batch->find[i]))
			return -ENOENT;
	}
	for (i = 0; i < batch->size; i++)
		idr_remove(&idr, batch->remove[i]);
	return 0;
}

static void teardown_idr(const struct kdyno_path *path)
{
	idr_destroy(&idr);
}

#define TREE(_name, _operation, _batch, _count, _setup, _run, _teardown) \
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.count = _count,					\
		.library = true,					\
		.argument = &(const struct tree) { _batch, _run },	\
		.setup = _setup,					\
		.prepare = prepare,					\
		.run = run,						\
		.teardown = _teardown,					\
	}

static const struct kdyno_path rows[] = {
	TREE("xarray", "random index of 1,024 stored, loaded and erased",
	     1024, 2048, NULL, run_xarray, teardown_xarray),
	TREE("maple_tree", "random index of 256 stored, loaded and erased",
	     256, 512, NULL, run_maple, teardown_maple),
	TREE("rbtree", "random key of 1,024 added, found and erased",
	     1024, 2048, NULL, run_rbtree, NULL),
	TREE("rhashtable", "random key of 1,024 inserted, found and removed",
	     1024, 4096, setup_rhashtable, run_rhashtable, teardown_rhashtable),
	TREE("idr", "number of 1,024 allocated, found and removed",
	     1024, 4096, NULL, run_idr, teardown_idr),
	{ }
};

const struct kdyno_group kdyno_trees = { "trees", rows };
