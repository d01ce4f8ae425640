/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Benchmarks that a kernel runs on itself: paths through it, each of them
 * timed and marked by main.c. A group of them is a file with a table.
 */
#ifndef KDYNO_PATHS_H
#define KDYNO_PATHS_H

#include <linux/kernel.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/sched.h>

/**
 * struct kdyno_path - one benchmark
 * @name: what it is called, unique and without blanks
 * @operation: what one operation is
 * @size: bytes that one operation moves; 0 where operations are what counts
 * @count: operations in one repetition, which takes 0.1 to 1 ms
 * @library: a pure loop of a function of lib/
 * @argument: what tells rows with the same functions apart
 * @setup: makes what all repetitions use; 0, or an error
 * @prepare: makes new data for one repetition, which isn't timed; 0, or an
 *	error
 * @run: the operations of one repetition, which are timed; 0, or an error
 * @teardown: undoes @setup, also one that failed half-way
 *
 * Only @run is required.
 */
struct kdyno_path {
	const char *name;
	const char *operation;
	unsigned int size;
	unsigned int count;
	bool library;
	const void *argument;
	int (*setup)(const struct kdyno_path *path);
	int (*prepare)(const struct kdyno_path *path);
	int (*run)(const struct kdyno_path *path);
	void (*teardown)(const struct kdyno_path *path);
};

/**
 * struct kdyno_group - the benchmarks of one file
 * @name: what the group is called
 * @paths: they end with a row without a name
 */
struct kdyno_group {
	const char *name;
	const struct kdyno_path *paths;
};

extern const struct kdyno_group kdyno_files;
extern const struct kdyno_group kdyno_filter;
extern const struct kdyno_group kdyno_inet;
extern const struct kdyno_group kdyno_library;
extern const struct kdyno_group kdyno_lookup;
extern const struct kdyno_group kdyno_memory;
extern const struct kdyno_group kdyno_pipe;
extern const struct kdyno_group kdyno_poll;
extern const struct kdyno_group kdyno_sched;
extern const struct kdyno_group kdyno_seq;
extern const struct kdyno_group kdyno_trees;
extern const struct kdyno_group kdyno_unix;

/* Where file systems are mounted. */
#define KDYNO_TMPFS	"/kdyno/tmpfs"
#define KDYNO_EXT4	"/kdyno/ext4"
#define KDYNO_PROC	"/kdyno/proc"

/* The RAM disk, and its ext4 file system of so many blocks of 4 kB. */
#define KDYNO_DISK	"/kdyno/ram0"
#define KDYNO_BLOCKS	16384

int kdyno_mkfs(void);

/* Data to copy from, and room to copy to. */
#define KDYNO_BUFFER	0x100000

extern u8 *kdyno_from;
extern u8 *kdyno_to;

/* Where results go that nobody reads, lest the compiler drop the work. */
extern u64 kdyno_sink;

/*
 * Pseudo-random numbers, the same in each kernel: they depend on the seed of
 * the command line, the path and the repetition alone.
 */
u64 kdyno_random(void);
u32 kdyno_below(u32 bound);
void kdyno_fill(void *to, size_t size);
void kdyno_shuffle(u32 *order, u32 count);

/* A thread that ends by itself or sees kthread_should_stop(). */
struct task_struct *kdyno_thread(int (*run)(void *argument), void *argument);
void kdyno_thread_end(struct task_struct **thread);

/* Send or receive so many bytes: 0, or an error. */
int kdyno_send(struct socket *socket, const void *from, size_t size);
int kdyno_receive(struct socket *socket, void *to, size_t size);
void kdyno_release(struct socket **socket);

/* A thread that sends back each byte that comes in, until its end. */
int kdyno_echo(void *socket);
int kdyno_ping(struct socket *socket, unsigned int count);

/* Read or write at an offset: 0, or an error; less than all is one, too. */
int kdyno_read(struct file *file, void *to, size_t size, loff_t at);
int kdyno_write(struct file *file, const void *from, size_t size, loff_t at);
void kdyno_close(struct file **file);

int kdyno_mkdir(const char *path);
int kdyno_unlink(const char *path);
int kdyno_rmdir(const char *path);
int kdyno_rename(const char *from, const char *to);

/* Let what was put off happen: callbacks of RCU, last puts of files, timers. */
void kdyno_settle(unsigned int seconds);

#endif
