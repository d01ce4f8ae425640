// SPDX-License-Identifier: GPL-2.0
/* Text that the kernel makes of its state: files of /proc. */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/uio.h>

#include "kdyno_paths.h"

static struct file *file;
static loff_t place;

static int setup(const struct kdyno_path *path)
{
	file = filp_open(path->argument, O_RDONLY, 0);
	return PTR_ERR_OR_ZERO(file);
}

static ssize_t read_at(loff_t *at)
{
	struct kvec part = { kdyno_to, PAGE_SIZE };
	struct iov_iter to;
	struct kiocb call;
	ssize_t got;

	init_sync_kiocb(&call, file);
	call.ki_pos = *at;
	iov_iter_kvec(&to, ITER_DEST, &part, 1, part.iov_len);
	got = seq_read_iter(&call, &to);
	*at = call.ki_pos;
	return got;
}

/* kernel_read() wants read_iter(), which not all of these files have. */
static int run(const struct kdyno_path *path)
{
	unsigned int i;
	ssize_t got = 0;

	for (i = 0; i < path->count; i++) {
		loff_t at = 0;

		do {
			got = read_at(&at);
		} while (got > 0);
		if (got < 0)
			return got;
		if (!at)
			return -ENODATA;
	}
	return 0;
}

static int read_pages(unsigned int count)
{
	while (count--) {
		ssize_t got = read_at(&place);

		if (got <= 0)
			return got ?: -ENODATA;
	}
	return 0;
}

/* A long file: one page of it for each operation, from another place each time. */
static int prepare_page(const struct kdyno_path *path)
{
	place = 0;
	return read_pages(1 + kdyno_below(100));
}

static int run_page(const struct kdyno_path *path)
{
	return read_pages(path->count);
}

static void teardown(const struct kdyno_path *path)
{
	kdyno_close(&file);
}

#define ROW(_name, _operation, _file, _size, _count, _prepare, _run)	\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.size = _size,						\
		.count = _count,					\
		.argument = KDYNO_PROC "/" _file,			\
		.setup = setup,						\
		.prepare = _prepare,					\
		.run = _run,						\
		.teardown = teardown,					\
	}

static const struct kdyno_path rows[] = {
	ROW("proc_meminfo", "/proc/meminfo read", "meminfo", 0, 250, NULL, run),
	ROW("proc_stat", "/proc/stat read", "stat", 0, 150, NULL, run),
	ROW("proc_vmstat", "/proc/vmstat read", "vmstat", 0, 150, NULL, run),
	ROW("proc_status", "/proc/self/status read", "self/status", 0, 250, NULL, run),
	ROW("proc_mountinfo", "/proc/self/mountinfo read", "self/mountinfo", 0,
	    200, NULL, run),
	ROW("proc_kallsyms", "page of /proc/kallsyms read", "kallsyms", PAGE_SIZE,
	    20, prepare_page, run_page),
	{ }
};

const struct kdyno_group kdyno_seq = { "seq", rows };
