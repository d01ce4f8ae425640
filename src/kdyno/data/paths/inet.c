// SPDX-License-Identifier: GPL-2.0
/* UDP and TCP over the loopback device, and through connection tracking. */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/netfilter.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/sock.h>

#include "kdyno_paths.h"

/* Ports are bound, since the kernel would draw them. */
#define SERVER		7001
#define CLIENT		7101

/* TIME-WAIT is over after so many seconds. */
#define TIME_WAIT_OVER	61

static struct socket *listener;
static struct socket *client;
static struct socket *server;
static struct task_struct *peer;
static bool tracked;

static struct sockaddr_in address(u16 port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
}

static int make_bound(struct socket **socket, int type, u16 port)
{
	struct sockaddr_in local = address(port);
	int error = sock_create_kern(&init_net, AF_INET, type, 0, socket);

	if (error)
		return error;
	sock_set_reuseaddr((*socket)->sk);
	return kernel_bind(*socket, (void *)&local, sizeof(local));
}

static int connect_to(struct socket *socket, u16 port)
{
	struct sockaddr_in remote = address(port);

	return kernel_connect(socket, (void *)&remote, sizeof(remote), 0);
}

static int setup_udp(const struct kdyno_path *path)
{
	int error = make_bound(&client, SOCK_DGRAM, CLIENT);

	error = error ?: make_bound(&server, SOCK_DGRAM, SERVER);
	error = error ?: connect_to(client, SERVER);
	return error ?: connect_to(server, CLIENT);
}

static int setup_udp_tracked(const struct kdyno_path *path)
{
	int error = nf_ct_netns_get(&init_net, NFPROTO_IPV4);

	tracked = !error;
	return error ?: setup_udp(path);
}

static int setup_listener(const struct kdyno_path *path)
{
	int error = make_bound(&listener, SOCK_STREAM, SERVER);

	return error ?: kernel_listen(listener, 64);
}

static int setup_tcp(const struct kdyno_path *path)
{
	int error = setup_listener(path);

	error = error ?: make_bound(&client, SOCK_STREAM, CLIENT);
	error = error ?: connect_to(client, SERVER);
	error = error ?: kernel_accept(listener, &server, 0);
	if (error)
		return error;
	tcp_sock_set_nodelay(client->sk);
	tcp_sock_set_nodelay(server->sk);
	return 0;
}

static int start_echo(int error)
{
	if (error)
		return error;
	peer = kdyno_thread(kdyno_echo, server);
	return PTR_ERR_OR_ZERO(peer);
}

static int setup_udp_ping(const struct kdyno_path *path)
{
	return start_echo(setup_udp(path));
}

static int setup_tcp_ping(const struct kdyno_path *path)
{
	return start_echo(setup_tcp(path));
}

static int prepare(const struct kdyno_path *path)
{
	kdyno_fill(kdyno_from, path->size);
	return 0;
}

static int prepare_connect(const struct kdyno_path *path)
{
	kdyno_settle(TIME_WAIT_OVER);
	return 0;
}

static int run_ping(const struct kdyno_path *path)
{
	return kdyno_ping(client, path->count);
}

static int run_stream(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		error = kdyno_send(client, kdyno_from, path->size);
		error = error ?: kdyno_receive(server, kdyno_to, path->size);
	}
	return error;
}

static int run_connect(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		struct socket *from = NULL, *to = NULL;

		error = make_bound(&from, SOCK_STREAM, CLIENT + i);
		error = error ?: connect_to(from, SERVER);
		error = error ?: kernel_accept(listener, &to, 0);
		kdyno_release(&from);
		kdyno_release(&to);
	}
	return error;
}

static void teardown(const struct kdyno_path *path)
{
	/* The other thread's receive ends, whichever the protocol. */
	if (peer)
		kernel_sock_shutdown(server, SHUT_RDWR);
	kdyno_thread_end(&peer);
	kdyno_release(&client);
	kdyno_release(&server);
	kdyno_release(&listener);
	if (tracked)
		nf_ct_netns_put(&init_net, NFPROTO_IPV4);
	tracked = false;
	kdyno_settle(TIME_WAIT_OVER);
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
	ROW("udp_64", "64 B sent and received, UDP",
	    64, 400, setup_udp, prepare, run_stream),
	ROW("udp_1400", "1,400 B sent and received, UDP",
	    1400, 400, setup_udp, prepare, run_stream),
	ROW("udp_64_tracked", "64 B sent and received, UDP with conntrack",
	    64, 300, setup_udp_tracked, prepare, run_stream),
	ROW("udp_ping", "byte to another thread and back, UDP",
	    0, 150, setup_udp_ping, NULL, run_ping),
	ROW("tcp_ping", "byte to another thread and back, TCP",
	    0, 100, setup_tcp_ping, NULL, run_ping),
	ROW("tcp_stream_4k", "4 kB sent and received, TCP",
	    4096, 200, setup_tcp, prepare, run_stream),
	ROW("tcp_stream_64k", "64 kB sent and received, TCP",
	    65536, 30, setup_tcp, prepare, run_stream),
	ROW("tcp_connect", "connection made, accepted and closed, TCP",
	    0, 30, setup_listener, prepare_connect, run_connect),
	{ }
};

const struct kdyno_group kdyno_inet = { "inet", rows };
