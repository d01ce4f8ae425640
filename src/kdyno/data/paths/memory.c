// SPDX-License-Identifier: GPL-2.0
/* Memory taken and given back, in another order. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kdyno_paths.h"

#define BATCH		128
#define BULK		64

static void *objects[BATCH];
static struct page *pages[BATCH];
static u32 order[BATCH];
static u32 sizes[BATCH];
static struct kmem_cache *cache;

static int prepare(const struct kdyno_path *path)
{
	const unsigned int *size = path->argument;
	unsigned int i;

	kdyno_shuffle(order, BATCH);
	for (i = 0; i < BATCH; i++) {
		/* Mixed: 8 B to 4 kB, small ones as often as large ones. */
		if (size)
			sizes[i] = *size;
		else
			sizes[order[i]] = 8 + kdyno_below(8 << i % 10);
	}
	kdyno_shuffle(order, BATCH);
	return 0;
}

static int run_kmalloc(const struct kdyno_path *path)
{
	unsigned int done, i;

	for (done = 0; done < path->count; done += BATCH) {
		for (i = 0; i < BATCH; i++)
			objects[i] = kmalloc(sizes[i], GFP_KERNEL);
		for (i = 0; i < BATCH; i++) {
			void *object = objects[order[i]];

			if (!object)
				done = path->count;
			kfree(object);
		}
	}
	return done == path->count ? 0 : -ENOMEM;
}

static int setup_bulk(const struct kdyno_path *path)
{
	cache = kmem_cache_create("kdyno", 256, 0, 0, NULL);
	return cache ? 0 : -ENOMEM;
}

static int run_bulk(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		if (!kmem_cache_alloc_bulk(cache, GFP_KERNEL, BULK, objects))
			return -ENOMEM;
		kmem_cache_free_bulk(cache, BULK, objects);
	}
	return 0;
}

static void teardown_bulk(const struct kdyno_path *path)
{
	kmem_cache_destroy(cache);
	cache = NULL;
}

static int run_pages(const struct kdyno_path *path)
{
	unsigned int page_order = *(const unsigned int *)path->argument;
	unsigned int done, i;
	bool failed = false;

	for (done = 0; done < path->count; done += BATCH) {
		for (i = 0; i < BATCH; i++)
			pages[i] = alloc_pages(GFP_KERNEL, page_order);
		for (i = 0; i < BATCH; i++) {
			struct page *page = pages[order[i]];

			if (page)
				__free_pages(page, page_order);
			failed |= !page;
		}
	}
	return failed ? -ENOMEM : 0;
}

static const unsigned int numbers[] = { 0, 1, 2, 3, 32, 192, 1024, 8192 };

#define PAGES(_order)							\
	{								\
		.name = "pages_" #_order,				\
		.operation = "pages of order " #_order " taken and given back", \
		.count = 4096,						\
		.argument = &numbers[_order],				\
		.prepare = prepare,					\
		.run = run_pages,					\
	}

#define KMALLOC(_name, _operation, _count, _argument)			\
	{								\
		.name = "kmalloc_" _name,				\
		.operation = _operation " taken and given back",	\
		.count = _count,						\
		.argument = _argument,					\
		.prepare = prepare,					\
		.run = run_kmalloc,					\
	}

static const struct kdyno_path rows[] = {
	KMALLOC("32", "32 B", 16384, &numbers[4]),
	KMALLOC("192", "192 B", 16384, &numbers[5]),
	KMALLOC("1024", "1 kB", 12288, &numbers[6]),
	KMALLOC("8192", "8 kB", 4096, &numbers[7]),
	KMALLOC("mixed", "8 B to 4 kB", 16384, NULL),
	{
		.name = "slab_bulk",
		.operation = "64 objects of 256 B taken and given back at once",
		.count = 800,
		.setup = setup_bulk,
		.run = run_bulk,
		.teardown = teardown_bulk,
	},
	PAGES(0),
	PAGES(1),
	PAGES(2),
	PAGES(3),
	{ }
};

const struct kdyno_group kdyno_memory = { "memory", rows };
