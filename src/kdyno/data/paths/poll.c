// SPDX-License-Identifier: GPL-2.0
/*
 * Many files watched at once. The system calls copy from and to a user process,
 * of which there is none: what is timed is what they do between the copies.
 */
#include <linux/fs.h>
#include <linux/uaccess.h>
#include <linux/eventpoll.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/syscalls.h>

#include "kdyno_paths.h"

#define MAX_FILES	500
#define MAX_COUNT	2048

static struct file *pipes[MAX_FILES][2];
static int descriptors[MAX_FILES];
static int epoll_descriptor;
static struct file *epoll;
static u32 order[MAX_COUNT];

static unsigned int files_of(const struct kdyno_path *path)
{
	return *(const unsigned int *)path->argument;
}

/* A pipe keeps the page of its first byte: let none be the first that is timed. */
static int make_pipe(struct file **ends)
{
	u8 byte = 0;
	int error = create_pipe_files(ends, 0);

	error = error ?: kdyno_write(ends[1], &byte, 1, 0);
	return error ?: kdyno_read(ends[0], &byte, 1, 0);
}

static int setup_poll(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	memset(descriptors, -1, sizeof(descriptors));
	epoll_descriptor = -1;
	for (i = 0; i < files_of(path) && !error; i++)
		error = make_pipe(pipes[i]);
	return error;
}

static int watch(int operation, unsigned int i)
{
	struct epoll_event event = { .events = EPOLLIN, .data = i };

	return do_epoll_ctl(epoll_descriptor, operation, descriptors[i], &event,
			    false);
}

static int setup_epoll(const struct kdyno_path *path)
{
	unsigned int i;
	int error = setup_poll(path);

	if (error)
		return error;
	epoll_descriptor = sys_epoll_create1(0);
	if (epoll_descriptor < 0)
		return epoll_descriptor;
	epoll = fget(epoll_descriptor);
	for (i = 0; i < files_of(path); i++) {
		descriptors[i] = get_unused_fd_flags(0);
		if (descriptors[i] < 0)
			return descriptors[i];
		fd_install(descriptors[i], get_file(pipes[i][0]));
		error = watch(EPOLL_CTL_ADD, i);
		if (error)
			return error;
	}
	return 0;
}

static void teardown(const struct kdyno_path *path)
{
	unsigned int i;

	kdyno_close(&epoll);
	if (epoll_descriptor >= 0)
		close_fd(epoll_descriptor);
	for (i = 0; i < files_of(path); i++) {
		if (descriptors[i] >= 0)
			close_fd(descriptors[i]);
		kdyno_close(&pipes[i][0]);
		kdyno_close(&pipes[i][1]);
	}
}

static int prepare(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		order[i] = kdyno_below(files_of(path));
	return 0;
}

/* As do_poll() asks each file before it sleeps. */
static int run_poll(const struct kdyno_path *path)
{
	unsigned int i, j, files = files_of(path);

	for (i = 0; i < path->count; i++) {
		struct poll_wqueues table;

		poll_initwait(&table);
		for (j = 0; j < files; j++) {
			table.pt._key = EPOLLIN | EPOLLERR | EPOLLHUP;
			kdyno_sink += vfs_poll(pipes[j][0], &table.pt);
		}
		poll_freewait(&table);
		if (table.error)
			return table.error;
	}
	return 0;
}

/* A file becomes ready, epoll says so, and says nothing once it was read. */
static int run_epoll(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct file **ends = pipes[order[i]];
		u8 byte = 0;
		int error = kdyno_write(ends[1], &byte, 1, 0);

		if (!error && !vfs_poll(epoll, NULL))
			error = -EIO;
		error = error ?: kdyno_read(ends[0], &byte, 1, 0);
		if (!error && vfs_poll(epoll, NULL))
			error = -EIO;
		if (error)
			return error;
	}
	return 0;
}

static int run_epoll_change(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = watch(EPOLL_CTL_DEL, order[i]);
		error = error ?: watch(EPOLL_CTL_ADD, order[i]);
	}
	return error;
}

static const unsigned int few = 10;
static const unsigned int many = MAX_FILES;

#define ROW(_name, _operation, _files, _count, _setup, _run)		\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.count = _count,					\
		.argument = _files,					\
		.setup = _setup,					\
		.prepare = prepare,					\
		.run = _run,						\
		.teardown = teardown,					\
	}

static const struct kdyno_path rows[] = {
	ROW("poll_10", "10 pipes asked, none of them ready",
	    &few, 1000, setup_poll, run_poll),
	ROW("poll_500", "500 pipes asked, none of them ready",
	    &many, 20, setup_poll, run_poll),
	ROW("epoll_10", "byte to one of 10 pipes, seen by epoll and read",
	    &few, 1600, setup_epoll, run_epoll),
	ROW("epoll_500", "byte to one of 500 pipes, seen by epoll and read",
	    &many, 1200, setup_epoll, run_epoll),
	ROW("epoll_change_500", "one of 500 pipes taken from epoll and added again",
	    &many, 800, setup_epoll, run_epoll_change),
	{ }
};

const struct kdyno_group kdyno_poll = { "poll", rows };
