// SPDX-License-Identifier: GPL-2.0
/* Names: looked up, opened, made, renamed and removed. */
#include <linux/dcache.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/stat.h>
#include <fs/internal.h>

#include "kdyno_paths.h"

#define FILES		64
#define MAX_COUNT	2048
#define LENGTH		80
#define FLAT		KDYNO_TMPFS "/flat"
#define DEEP		KDYNO_TMPFS "/deep"
#define EXT4		KDYNO_EXT4 "/flat"

/* A directory with files, eight directories below another or not. */
struct place {
	const char *top;
	unsigned int levels;
};

static const struct place flat = { FLAT, 0 };
static const struct place deep = { DEEP, 8 };
static const struct place ext4 = { EXT4, 0 };

static char directory[LENGTH];
static char names[FILES][LENGTH];
static char others[FILES][LENGTH];
static u32 order[MAX_COUNT];
static struct file *opened;

#if KDYNO_LINUX >= 7000
int kdyno_unlink(const char *path)
{
	CLASS(filename_kernel, name)(path);

	return filename_unlinkat(AT_FDCWD, name);
}

int kdyno_rmdir(const char *path)
{
	CLASS(filename_kernel, name)(path);

	return filename_rmdir(AT_FDCWD, name);
}

int kdyno_mkdir(const char *path)
{
	CLASS(filename_kernel, name)(path);

	return filename_mkdirat(AT_FDCWD, name, 0755);
}

int kdyno_rename(const char *from, const char *to)
{
	CLASS(filename_kernel, old)(from);
	CLASS(filename_kernel, new)(to);

	return filename_renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}
#else
int kdyno_unlink(const char *path)
{
	return do_unlinkat(AT_FDCWD, getname_kernel(path));
}

int kdyno_rmdir(const char *path)
{
	return do_rmdir(AT_FDCWD, getname_kernel(path));
}

int kdyno_mkdir(const char *path)
{
	return do_mkdirat(AT_FDCWD, getname_kernel(path), 0755);
}

int kdyno_rename(const char *from, const char *to)
{
	return do_renameat2(AT_FDCWD, getname_kernel(from),
			    AT_FDCWD, getname_kernel(to), 0);
}
#endif

static int create(const char *name)
{
	struct file *file = filp_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (IS_ERR(file))
		return PTR_ERR(file);
	__fput_sync(file);
	return 0;
}

static int make_directories(const struct place *place)
{
	unsigned int level, length;
	int error;

	length = scnprintf(directory, LENGTH, "%s", place->top);
	error = kdyno_mkdir(directory);
	for (level = 0; level < place->levels && !error; level++) {
		length += scnprintf(directory + length, LENGTH - length,
				    "/%c", 'a' + level);
		error = kdyno_mkdir(directory);
	}
	return error;
}

/* Names of files that are there, and of others that are not. */
static int setup(const struct kdyno_path *path)
{
	unsigned int i;
	int error = make_directories(path->argument);

	for (i = 0; i < FILES && !error; i++) {
		scnprintf(names[i], LENGTH, "%s/file%05u", directory,
			  kdyno_below(1000) * FILES + i);
		scnprintf(others[i], LENGTH, "%s/none%05u", directory,
			  kdyno_below(1000) * FILES + i);
		error = create(names[i]);
	}
	return error;
}

static void teardown(const struct kdyno_path *path)
{
	const struct place *place = path->argument;
	unsigned int i, level;

	kdyno_close(&opened);
	for (i = 0; i < FILES; i++) {
		if (names[i][0])
			kdyno_unlink(names[i]);
		names[i][0] = 0;
	}
	for (level = 0; level <= place->levels; level++) {
		kdyno_rmdir(directory);
		*(strrchr(directory, '/') ?: directory) = 0;
	}
}

static int prepare(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		order[i] = kdyno_below(FILES);
	return 0;
}

static int run_lookup(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct path found;
		int error = kern_path(names[order[i]], LOOKUP_FOLLOW, &found);

		if (error)
			return error;
		path_put(&found);
	}
	return 0;
}

static int run_negative(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct path found;
		int error = kern_path(others[order[i]], LOOKUP_FOLLOW, &found);

		if (!error)
			path_put(&found);
		if (error != -ENOENT)
			return error ?: -EEXIST;
	}
	return 0;
}

static int run_stat(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct path found;
		struct kstat stat;
		int error = kern_path(names[order[i]], LOOKUP_FOLLOW, &found);

		if (error)
			return error;
		error = vfs_getattr(&found, &stat, STATX_BASIC_STATS,
				    AT_NO_AUTOMOUNT);
		path_put(&found);
		if (error)
			return error;
		kdyno_sink += stat.ino;
	}
	return 0;
}

static int run_open(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct file *file = filp_open(names[order[i]], O_RDONLY, 0);

		if (IS_ERR(file))
			return PTR_ERR(file);
		__fput_sync(file);
	}
	return 0;
}

static int run_create(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = create(others[order[i]]);
		error = error ?: kdyno_unlink(others[order[i]]);
	}
	return error;
}

static int run_mkdir(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_mkdir(others[order[i]]);
		error = error ?: kdyno_rmdir(others[order[i]]);
	}
	return error;
}

/* There and back: after two operations all files have their names again. */
static int run_rename(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i + 1 < path->count && !error; i += 2) {
		const char *name = names[order[i]], *other = others[order[i]];

		error = kdyno_rename(name, other);
		error = error ?: kdyno_rename(other, name);
	}
	return error;
}

static bool see_entry(struct dir_context *context, const char *name, int length,
		      loff_t offset, u64 inode, unsigned int type)
{
	kdyno_sink += inode + length + name[0];
	return true;
}

static int prepare_readdir(const struct kdyno_path *path)
{
	if (!opened)
		opened = filp_open(directory, O_RDONLY | O_DIRECTORY, 0);
	return PTR_ERR_OR_ZERO(opened);
}

static int run_readdir(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		struct dir_context context = { .actor = see_entry };
		loff_t at = vfs_llseek(opened, 0, SEEK_SET);

		error = at < 0 ? at : iterate_dir(opened, &context);
	}
	return error;
}

#define ROW(_name, _operation, _place, _count, _prepare, _run)		\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.count = _count,					\
		.argument = _place,					\
		.setup = setup,						\
		.prepare = _prepare,					\
		.run = _run,						\
		.teardown = teardown,					\
	}

static const struct kdyno_path rows[] = {
	ROW("lookup", "name of one of 64 files in a directory looked up",
	    &flat, 2048, prepare, run_lookup),
	ROW("lookup_deep", "name of one of 64 files nine directories down looked up",
	    &deep, 1024, prepare, run_lookup),
	ROW("lookup_negative", "name of no file looked up",
	    &flat, 1024, prepare, run_negative),
	ROW("stat", "file looked up by name and its attributes read",
	    &flat, 1024, prepare, run_stat),
	ROW("open_close", "file opened by name and closed",
	    &flat, 1200, prepare, run_open),
	ROW("create_unlink", "file made, closed and removed on tmpfs",
	    &flat, 200, prepare, run_create),
	ROW("mkdir_rmdir", "directory made and removed on tmpfs",
	    &flat, 300, prepare, run_mkdir),
	ROW("rename", "file renamed on tmpfs",
	    &flat, 400, prepare, run_rename),
	ROW("readdir", "64 entries of a directory read on tmpfs",
	    &flat, 400, prepare_readdir, run_readdir),
	ROW("ext4_open_close", "file opened by name and closed on ext4",
	    &ext4, 1200, prepare, run_open),
	ROW("ext4_create_unlink", "file made, closed and removed on ext4",
	    &ext4, 50, prepare, run_create),
	ROW("ext4_rename", "file renamed on ext4",
	    &ext4, 100, prepare, run_rename),
	ROW("ext4_readdir", "64 entries of a directory read on ext4",
	    &ext4, 50, prepare_readdir, run_readdir),
	{ }
};

const struct kdyno_group kdyno_lookup = { "lookup", rows };
