// SPDX-License-Identifier: GPL-2.0
/* Pipes: a byte back and forth between two threads, and streams. */
#include <linux/fs.h>
#include <linux/pipe_fs_i.h>

#include "kdyno_paths.h"

/* To the other thread and back; each a reading and a writing end. */
static struct file *there[2];
static struct file *back[2];
static struct task_struct *peer;

static int echo(void *unused)
{
	u8 byte;

	while (!kdyno_read(there[0], &byte, 1, 0)) {
		if (kdyno_write(back[1], &byte, 1, 0))
			break;
	}
	return 0;
}

static int setup(const struct kdyno_path *path)
{
	return create_pipe_files(there, 0);
}

static int setup_ping(const struct kdyno_path *path)
{
	int error = create_pipe_files(there, 0);

	error = error ?: create_pipe_files(back, 0);
	if (error)
		return error;
	peer = kdyno_thread(echo, NULL);
	return PTR_ERR_OR_ZERO(peer);
}

static int prepare(const struct kdyno_path *path)
{
	kdyno_fill(kdyno_from, path->size);
	return 0;
}

static int run_ping(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;
	u8 byte = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_write(there[1], &byte, 1, 0);
		error = error ?: kdyno_read(back[0], &byte, 1, 0);
	}
	return error;
}

static int run_stream(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_write(there[1], kdyno_from, path->size, 0);
		error = error ?: kdyno_read(there[0], kdyno_to, path->size, 0);
	}
	return error;
}

static void teardown(const struct kdyno_path *path)
{
	/* The other thread reads the end of its pipe and goes. */
	kdyno_close(&there[1]);
	kdyno_thread_end(&peer);
	kdyno_close(&there[0]);
	kdyno_close(&back[0]);
	kdyno_close(&back[1]);
}

static const struct kdyno_path rows[] = {
	{
		.name = "pipe_ping",
		.operation = "byte to another thread and back, two pipes",
		.count = 400,
		.setup = setup_ping,
		.run = run_ping,
		.teardown = teardown,
	}, {
		.name = "pipe_stream_64",
		.operation = "64 B written to a pipe and read",
		.size = 64,
		.count = 2000,
		.setup = setup,
		.prepare = prepare,
		.run = run_stream,
		.teardown = teardown,
	}, {
		.name = "pipe_stream_4k",
		.operation = "4 kB written to a pipe and read",
		.size = 4096,
		.count = 800,
		.setup = setup,
		.prepare = prepare,
		.run = run_stream,
		.teardown = teardown,
	}, {
		.name = "pipe_stream_64k",
		.operation = "64 kB written to a pipe and read",
		.size = 65536,
		.count = 50,
		.setup = setup,
		.prepare = prepare,
		.run = run_stream,
		.teardown = teardown,
	},
	{ }
};

const struct kdyno_group kdyno_pipe = { "pipe", rows };
