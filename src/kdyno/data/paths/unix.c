// SPDX-License-Identifier: GPL-2.0
/* AF_UNIX: a byte back and forth between two threads, streams and datagrams. */
#include <linux/net.h>
#include <linux/socket.h>
#include <net/net_namespace.h>

#include "kdyno_paths.h"

static struct socket *ends[2];
static struct task_struct *peer;

static int make_pair(int type)
{
	int error = sock_create_kern(&init_net, AF_UNIX, type, 0, &ends[0]);

	error = error ?: sock_create_kern(&init_net, AF_UNIX, type, 0, &ends[1]);
	return error ?: ends[0]->ops->socketpair(ends[0], ends[1]);
}

static int setup_stream(const struct kdyno_path *path)
{
	return make_pair(SOCK_STREAM);
}

static int setup_datagram(const struct kdyno_path *path)
{
	return make_pair(SOCK_DGRAM);
}

static int setup_ping(const struct kdyno_path *path)
{
	int error = make_pair(SOCK_STREAM);

	if (error)
		return error;
	peer = kdyno_thread(kdyno_echo, ends[1]);
	return PTR_ERR_OR_ZERO(peer);
}

static int prepare(const struct kdyno_path *path)
{
	kdyno_fill(kdyno_from, path->size);
	return 0;
}

static int run_ping(const struct kdyno_path *path)
{
	return kdyno_ping(ends[0], path->count);
}

static int run_stream(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_send(ends[0], kdyno_from, path->size);
		error = error ?: kdyno_receive(ends[1], kdyno_to, path->size);
	}
	return error;
}

static void teardown(const struct kdyno_path *path)
{
	/* The other thread reads the end of its stream and goes. */
	kdyno_release(&ends[0]);
	kdyno_thread_end(&peer);
	kdyno_release(&ends[1]);
}

#define ROW(_name, _operation, _size, _count, _setup, _prepare, _run)	\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.size = _size,						\
		.count = _count,					\
		.setup = _setup,					\
		.prepare = _prepare,					\
		.run = _run,						\
		.teardown = teardown,					\
	}

static const struct kdyno_path rows[] = {
	ROW("unix_ping", "byte to another thread and back, AF_UNIX stream",
	    0, 300, setup_ping, NULL, run_ping),
	ROW("unix_stream_64", "64 B sent and received, AF_UNIX stream",
	    64, 1600, setup_stream, prepare, run_stream),
	ROW("unix_stream_4k", "4 kB sent and received, AF_UNIX stream",
	    4096, 500, setup_stream, prepare, run_stream),
	ROW("unix_stream_64k", "64 kB sent and received, AF_UNIX stream",
	    65536, 50, setup_stream, prepare, run_stream),
	ROW("unix_datagram_64", "64 B sent and received, AF_UNIX datagram",
	    64, 1600, setup_datagram, prepare, run_stream),
	{ }
};

const struct kdyno_group kdyno_unix = { "unix", rows };
