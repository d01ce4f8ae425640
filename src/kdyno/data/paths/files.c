// SPDX-License-Identifier: GPL-2.0
/* Reads and writes of a file in the page cache, on tmpfs and on ext4. */
#include <linux/fs.h>

#include "kdyno_paths.h"

#define MAX_COUNT	4096

/* So much lies in a cache of second level, the other buffer beside it. */
#define SPAN		0x40000

static struct file *file;
static loff_t offsets[MAX_COUNT];

static int setup(const struct kdyno_path *path)
{
	file = filp_open(path->argument, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (IS_ERR(file))
		return PTR_ERR(file);
	kdyno_fill(kdyno_from, SPAN);
	return kdyno_write(file, kdyno_from, SPAN, 0);
}

/* Other places of the file each time, aligned like the size. */
static int prepare(const struct kdyno_path *path)
{
	u32 places = SPAN / path->size;
	unsigned int i;

	for (i = 0; i < path->count; i++)
		offsets[i] = (loff_t)kdyno_below(places) * path->size;
	kdyno_fill(kdyno_from, path->size);
	return 0;
}

static int run_read(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++)
		error = kdyno_read(file, kdyno_to, path->size, offsets[i]);
	return error;
}

static int run_write(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++)
		error = kdyno_write(file, kdyno_from, path->size, offsets[i]);
	return error;
}

static int run_write_sync(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_write(file, kdyno_from, path->size, offsets[i]);
		error = error ?: vfs_fsync(file, 0);
	}
	return error;
}

/* The file grows from nothing, and is cut again outside of what is timed. */
static int prepare_append(const struct kdyno_path *path)
{
	kdyno_fill(kdyno_from, path->size);
	kdyno_close(&file);
	file = filp_open(path->argument, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return PTR_ERR_OR_ZERO(file);
}

static int run_append(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++)
		error = kdyno_write(file, kdyno_from, path->size,
				    (loff_t)i * path->size);
	return error;
}

static void teardown(const struct kdyno_path *path)
{
	kdyno_close(&file);
	kdyno_unlink(path->argument);
}

#define ROW(_name, _operation, _file, _size, _count, _prepare, _run)	\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.size = _size,						\
		.count = _count,					\
		.argument = _file,					\
		.setup = setup,						\
		.prepare = _prepare,					\
		.run = _run,						\
		.teardown = teardown,					\
	}

#define TMPFS	KDYNO_TMPFS "/file"
#define EXT4	KDYNO_EXT4 "/file"

static const struct kdyno_path rows[] = {
	ROW("tmpfs_read_64", "64 B read at a random place of 256 kB on tmpfs",
	    TMPFS, 64, 4096, prepare, run_read),
	ROW("tmpfs_read_4k", "4 kB read at a random place of 256 kB on tmpfs",
	    TMPFS, 4096, 1000, prepare, run_read),
	ROW("tmpfs_read_64k", "64 kB read at a random place of 256 kB on tmpfs",
	    TMPFS, 65536, 100, prepare, run_read),
	ROW("tmpfs_write_64", "64 B written at a random place of 256 kB on tmpfs",
	    TMPFS, 64, 2048, prepare, run_write),
	ROW("tmpfs_write_4k", "4 kB written at a random place of 256 kB on tmpfs",
	    TMPFS, 4096, 1000, prepare, run_write),
	ROW("tmpfs_write_64k", "64 kB written at a random place of 256 kB on tmpfs",
	    TMPFS, 65536, 100, prepare, run_write),
	ROW("tmpfs_append_4k", "4 kB appended to a new file on tmpfs",
	    TMPFS, 4096, 512, prepare_append, run_append),
	ROW("ext4_read_64", "64 B read at a random place of 256 kB on ext4",
	    EXT4, 64, 2048, prepare, run_read),
	ROW("ext4_read_4k", "4 kB read at a random place of 256 kB on ext4",
	    EXT4, 4096, 1000, prepare, run_read),
	ROW("ext4_read_64k", "64 kB read at a random place of 256 kB on ext4",
	    EXT4, 65536, 100, prepare, run_read),
	ROW("ext4_write_64", "64 B written at a random place of 256 kB on ext4",
	    EXT4, 64, 2048, prepare, run_write),
	ROW("ext4_write_4k", "4 kB written at a random place of 256 kB on ext4",
	    EXT4, 4096, 1000, prepare, run_write),
	ROW("ext4_write_64k", "64 kB written at a random place of 256 kB on ext4",
	    EXT4, 65536, 100, prepare, run_write),
	ROW("ext4_append_4k", "4 kB appended to a new file on ext4",
	    EXT4, 4096, 512, prepare_append, run_append),
	ROW("ext4_fsync_4k", "4 kB written and synced on ext4",
	    EXT4, 4096, 150, prepare, run_write_sync),
	{ }
};

const struct kdyno_group kdyno_files = { "files", rows };
