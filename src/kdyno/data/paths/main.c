// SPDX-License-Identifier: GPL-2.0
/*
 * The driver: a kernel thread that runs the paths, one after the other, writes
 * samples to standard output and powers off.
 */
#include <linux/completion.h>
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/stat.h>
#include <linux/init_syscalls.h>
#include <linux/kdev_t.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/reboot.h>
#include <linux/rtnetlink.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time-internal.h>
#include <linux/utsname.h>
#include <net/net_namespace.h>
#include <as-layout.h>
#include <os.h>

#include "huge_user.h"
#include "kdyno_paths.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "kdyno."

static char *paths = "";
module_param(paths, charp, 0);
MODULE_PARM_DESC(paths, "names of paths with commas between them; all if empty");

static unsigned int repetitions = 15;
module_param(repetitions, uint, 0);
MODULE_PARM_DESC(repetitions, "samples of each path");

static unsigned long seed = 1;
module_param(seed, ulong, 0);
MODULE_PARM_DESC(seed, "what keys and data are made from");

static unsigned int patience;
module_param(patience, uint, 0);
MODULE_PARM_DESC(patience, "how many looks at a disturbed core are spent on waiting");

static bool huge;
module_param(huge, bool, 0);
MODULE_PARM_DESC(huge, "move the kernel to huge pages of its host");

static bool list;
module_param(list, bool, 0);
MODULE_PARM_DESC(list, "write a table of the paths and run none");

#define MAX_REPETITIONS	10000
#define STDOUT		1

/* What crates/marker announces of a repetition that isn't recorded. */
#define WARM_UP		0xffff
#define UNSEEN		0xfffe

/* Repetitions before those that are recorded or seen. */
#define UNSEEN_REPETITIONS	2

/*
 * Instructions of the chain that tells the length of a core cycle. They last
 * longer than a TSC's step by a factor of 500: some count in steps of 10 ns.
 */
#define CHAIN		20000
#define CHAINS		4

/*
 * How many looks in a row, of 1 to 2 us each, must find the core calm before a
 * path and before each of its repetitions. Who disturbs a core comes again and
 * again for a while.
 */
#define CALM_PATH	500
#define CALM		50

/*
 * Four chains take a quarter of the time of one where each instruction finds a
 * free unit, as on a Zen 4. Golden Cove seems to choose it before it knows which is
 * free, and they take 0.29. Above 0.3 there is somebody else on every core.
 */
#define WIDE_PERCENT_MOST	30

static const struct kdyno_group * const groups[] = {
	&kdyno_files,
	&kdyno_lookup,
	&kdyno_pipe,
	&kdyno_unix,
	&kdyno_inet,
	&kdyno_poll,
	&kdyno_sched,
	&kdyno_memory,
	&kdyno_trees,
	&kdyno_seq,
	&kdyno_filter,
	&kdyno_library,
};

struct clock {
	u64 chain;
	u64 wide;
};

struct sample {
	u64 ticks;
	struct clock before;
	struct clock after;
};

/* The least times of the chains so far: somebody else only makes them longer. */
static struct clock least = { U64_MAX, U64_MAX };

u8 *kdyno_from;
u8 *kdyno_to;
u64 kdyno_sink;

static u64 random_state;
static struct sample *samples;

static __printf(1, 2) void say(const char *format, ...)
{
	char line[256];
	va_list arguments;
	int length, done = 0;

	va_start(arguments, format);
	length = vscnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	while (done < length) {
		int written = os_write_file(STDOUT, line + done, length - done);

		if (written < 0 && written != -EINTR && written != -EAGAIN)
			return;
		if (written > 0)
			done += written;
	}
}

static void random_seed(const char *name, unsigned int repetition)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL;
	random_state ^= (u64)crc32_le(~0, name, strlen(name)) << 32;
	random_state += repetition;
	kdyno_random();
}

u64 kdyno_random(void)
{
	u64 mixed;

	random_state += 0x9e3779b97f4a7c15ULL;
	mixed = random_state;
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

u32 kdyno_below(u32 bound)
{
	return ((kdyno_random() >> 32) * bound) >> 32;
}

void kdyno_fill(void *to, size_t size)
{
	u8 *at = to;

	for (; size >= sizeof(u64); size -= sizeof(u64), at += sizeof(u64)) {
		u64 word = kdyno_random();

		memcpy(at, &word, sizeof(word));
	}
	while (size--)
		*at++ = kdyno_random();
}

void kdyno_shuffle(u32 *order, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		order[i] = i;
	for (i = count; i > 1; i--) {
		u32 j = kdyno_below(i);

		swap(order[i - 1], order[j]);
	}
}

struct task_struct *kdyno_thread(int (*run)(void *argument), void *argument)
{
	struct task_struct *thread;

	thread = kthread_create(run, argument, "kdyno-peer");
	if (IS_ERR(thread))
		return thread;
	get_task_struct(thread);
	wake_up_process(thread);
	return thread;
}

void kdyno_thread_end(struct task_struct **thread)
{
	if (!IS_ERR_OR_NULL(*thread)) {
		kthread_stop(*thread);
		put_task_struct(*thread);
	}
	*thread = NULL;
}

int kdyno_send(struct socket *socket, const void *from, size_t size)
{
	struct msghdr message = {};
	struct kvec part = { (void *)from, size };
	int sent = kernel_sendmsg(socket, &message, &part, 1, size);

	return sent < 0 ? sent : sent == size ? 0 : -EIO;
}

int kdyno_receive(struct socket *socket, void *to, size_t size)
{
	while (size) {
		struct msghdr message = {};
		struct kvec part = { to, size };
		int got = kernel_recvmsg(socket, &message, &part, 1, size, 0);

		if (got <= 0)
			return got ?: -EPIPE;
		to += got;
		size -= got;
	}
	return 0;
}

void kdyno_release(struct socket **socket)
{
	if (*socket)
		sock_release(*socket);
	*socket = NULL;
}

int kdyno_echo(void *socket)
{
	u8 byte;

	while (!kdyno_receive(socket, &byte, 1)) {
		if (kdyno_send(socket, &byte, 1))
			break;
	}
	return 0;
}

int kdyno_ping(struct socket *socket, unsigned int count)
{
	u8 byte = 0;

	while (count--) {
		int error = kdyno_send(socket, &byte, 1);

		error = error ?: kdyno_receive(socket, &byte, 1);
		if (error)
			return error;
	}
	return 0;
}

int kdyno_read(struct file *file, void *to, size_t size, loff_t at)
{
	ssize_t got = kernel_read(file, to, size, &at);

	return got < 0 ? got : got == size ? 0 : -EIO;
}

int kdyno_write(struct file *file, const void *from, size_t size, loff_t at)
{
	ssize_t put = kernel_write(file, from, size, &at);

	return put < 0 ? put : put == size ? 0 : -EIO;
}

void kdyno_close(struct file **file)
{
	if (!IS_ERR_OR_NULL(*file))
		__fput_sync(*file);
	*file = NULL;
}

void kdyno_settle(unsigned int seconds)
{
	rcu_barrier();
	flush_delayed_fput();
	/* Seconds are free where time only passes while all sleep. */
	if (time_travel_mode == TT_MODE_INFCPU)
		ssleep(seconds);
}

static __always_inline u64 ticks(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

/* Additions that wait for each other, of registers: a cycle each. */
static __always_inline u64 chain_once(void)
{
	unsigned long sum = 0, step = seed | 1;
	unsigned int rounds = CHAIN / 100;
	u64 start = ticks();

	asm volatile("1:\n\t"
		     ".rept 100\n\t"
		     "add %[step], %[sum]\n\t"
		     ".endr\n\t"
		     "dec %[rounds]\n\t"
		     "jnz 1b"
		     : [sum] "+r" (sum), [rounds] "+r" (rounds)
		     : [step] "r" (step) : "cc");
	return ticks() - start;
}

/*
 * As many additions in four chains. Another thread of the same core leaves the
 * chain above as it is, but not these.
 */
static __always_inline u64 wide_once(void)
{
	unsigned long a = 0, b = 0, c = 0, d = 0, step = seed | 1;
	unsigned int rounds = CHAIN / 100;
	u64 start = ticks();

	asm volatile("1:\n\t"
		     ".rept 25\n\t"
		     "add %[step], %[a]\n\t"
		     "add %[step], %[b]\n\t"
		     "add %[step], %[c]\n\t"
		     "add %[step], %[d]\n\t"
		     ".endr\n\t"
		     "dec %[rounds]\n\t"
		     "jnz 1b"
		     : [a] "+r" (a), [b] "+r" (b), [c] "+r" (c), [d] "+r" (d),
		       [rounds] "+r" (rounds)
		     : [step] "r" (step) : "cc");
	return ticks() - start;
}

/*
 * The least of some tells the clock: what the host does meanwhile is no part of
 * it. The most of some tells whether anybody else was there: others come and go,
 * for some ten microseconds each time.
 */
static noinline struct clock read_clock(void)
{
	struct clock clock = { U64_MAX, 0 };
	unsigned int i;

	for (i = 0; i < CHAINS; i++) {
		clock.chain = min(clock.chain, chain_once());
		clock.wide = max(clock.wide, wide_once());
	}
	return clock;
}

/*
 * Look whether anybody else is on the core: whether four chains take over 10 %
 * more time, in that of one, than on the core alone.
 */
static bool look_for_others(u64 chain)
{
	u64 wide = wide_once(), alone;

	least.chain = min(least.chain, chain);
	least.wide = min(least.wide, wide);
	alone = min(least.wide, least.chain * WIDE_PERCENT_MOST / 100);
	return wide * least.chain * 10 > chain * alone * 11;
}

/*
 * Wait until so many looks in a row find nobody else on the core. To wait leaves
 * the kernel as it is; to repeat what was disturbed would not, and the next paths
 * would find other lists of free objects.
 */
static void wait_for_calm(unsigned int looks)
{
	unsigned int calm = 0;
	u64 chain;

	if (!patience)
		return;
	chain = min(chain_once(), chain_once());
	while (calm < looks && patience) {
		calm++;
		if (look_for_others(chain)) {
			patience -= min(patience, calm);
			calm = 0;
		}
	}
}

/* xchg %bx,%bx and the like do nothing; the emulated PMU looks for them. */
static __always_inline void mark_open(void)
{
	asm volatile(".byte 0x66, 0x87, 0xdb" : : : "memory");
}

static __always_inline void mark_close(void)
{
	asm volatile(".byte 0x66, 0x87, 0xc9" : : : "memory");
}

static noinline void announce(u16 path, u16 repetition)
{
	u32 word = (u32)path << 16 | repetition;
	int bit;

	for (bit = 31; bit >= 0; bit--) {
		if (word >> bit & 1)
			asm volatile(".byte 0x66, 0x87, 0xd2");
		else
			asm volatile(".byte 0x66, 0x87, 0xf6");
	}
}

static noinline int repeat(const struct kdyno_path *path, unsigned int index,
			   unsigned int repetition, unsigned int announced,
			   struct sample *sample)
{
	int error = 0;

	random_seed(path->name, repetition);
	if (path->prepare)
		error = path->prepare(path);
	if (error)
		return error;
	kdyno_settle(1);
	wait_for_calm(CALM);
	sample->before = read_clock();
	announce(index, announced);
	sample->ticks = ticks();
	mark_open();
	error = path->run(path);
	mark_close();
	sample->ticks = ticks() - sample->ticks;
	sample->after = read_clock();
	return error;
}

static int measure(const struct kdyno_path *path, unsigned int index)
{
	struct sample unused;
	unsigned int i;
	int error = 0;

	random_seed(path->name, ~0);
	if (path->setup)
		error = path->setup(path);
	wait_for_calm(CALM_PATH);
	for (i = 0; i < UNSEEN_REPETITIONS; i++)
		error = error ?: repeat(path, index, repetitions + i, UNSEEN, &unused);
	error = error ?: repeat(path, index, repetitions + i, WARM_UP, &unused);
	for (i = 0; i < repetitions && !error; i++)
		error = repeat(path, index, i, i, &samples[i]);
	if (path->teardown)
		path->teardown(path);
	kdyno_settle(1);
	return error;
}

static void measure_and_say(const struct kdyno_path *path, unsigned int index)
{
	int error = measure(path, index);
	unsigned int i;

	if (error) {
		say("kdyno-path-error %s %pe\n", path->name, ERR_PTR(error));
		return;
	}
	for (i = 0; i < repetitions; i++) {
		const struct sample *sample = &samples[i];

		say("kdyno-path %s %u %u %llu %llu %llu %u %llu %llu\n",
		    path->name, i, path->count, sample->ticks,
		    sample->before.chain, sample->after.chain, CHAIN,
		    sample->before.wide, sample->after.wide);
	}
}

static bool wanted(const char *name)
{
	const char *at = paths;
	size_t length = strlen(name);

	if (!*paths)
		return true;
	while (at) {
		if (!strncmp(at, name, length) &&
		    (at[length] == ',' || !at[length]))
			return true;
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return false;
}

static unsigned int all(void (*visit)(const struct kdyno_group *group,
				      const struct kdyno_path *path,
				      unsigned int index))
{
	const struct kdyno_path *path;
	unsigned int i, found = 0;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		for (path = groups[i]->paths; path->name; path++) {
			if (!wanted(path->name))
				continue;
			if (visit)
				visit(groups[i], path, found);
			found++;
		}
	}
	return found;
}

static void visit_to_list(const struct kdyno_group *group,
			  const struct kdyno_path *path, unsigned int index)
{
	say("kdyno-path-row\t%u\t%s\t%s\t%s\t%s\t%u\t%u\t%s\n", index,
	    path->name, group->name, path->operation,
	    path->size ? "byte" : "operation", path->size, path->count,
	    path->library ? "library" : "path");
}

static void visit_to_measure(const struct kdyno_group *group,
			     const struct kdyno_path *path, unsigned int index)
{
	measure_and_say(path, index);
}

/* Names that nobody knows are said, not passed over. */
static void check_names(void)
{
	char *copy = kstrdup(paths, GFP_KERNEL), *rest = copy, *name;

	while (copy && (name = strsep(&rest, ","))) {
		const struct kdyno_path *path = NULL;
		unsigned int i;
		bool known = !*name;

		for (i = 0; i < ARRAY_SIZE(groups) && !known; i++) {
			for (path = groups[i]->paths; path->name; path++)
				known |= !strcmp(path->name, name);
		}
		if (!known)
			say("kdyno-path-error %s there is no such path\n", name);
	}
	kfree(copy);
}

/* The image, and the memory behind what libc has taken. */
static void __init move_to_huge_pages(void)
{
	int error = kdyno_move_to_huge_pages(uml_physmem, (unsigned long)&_end, 1);

	if (error >= 0)
		error = kdyno_move_to_huge_pages(uml_reserved,
						 high_physmem, 0);
	if (error < 0)
		say("kdyno-path-error huge %pe\n", ERR_PTR(error));
}

static int __init make_buffers(void)
{
	kdyno_from = (u8 *)__get_free_pages(GFP_KERNEL, get_order(KDYNO_BUFFER));
	kdyno_to = (u8 *)__get_free_pages(GFP_KERNEL, get_order(KDYNO_BUFFER));
	samples = kvcalloc(repetitions, sizeof(*samples), GFP_KERNEL);
	if (!kdyno_from || !kdyno_to || !samples)
		return -ENOMEM;
	memset(kdyno_to, 0, KDYNO_BUFFER);
	return 0;
}

static void __init mount_all(void)
{
	int error;

	init_mkdir("/kdyno", 0755);
	init_mkdir(KDYNO_TMPFS, 0755);
	init_mkdir(KDYNO_EXT4, 0755);
	init_mkdir(KDYNO_PROC, 0755);
	init_mknod(KDYNO_DISK, S_IFBLK | 0600, new_encode_dev(MKDEV(1, 0)));
	error = init_mount("kdyno", KDYNO_TMPFS, "tmpfs", 0, NULL);
	if (error)
		say("kdyno-path-error tmpfs %pe\n", ERR_PTR(error));
	error = init_mount("kdyno", KDYNO_PROC, "proc", 0, NULL);
	if (error)
		say("kdyno-path-error proc %pe\n", ERR_PTR(error));
	error = kdyno_mkfs();
	error = error ?: init_mount(KDYNO_DISK, KDYNO_EXT4, "ext4", 0, NULL);
	if (error)
		say("kdyno-path-error ext4 %pe\n", ERR_PTR(error));
}

static void __init loopback_up(void)
{
	struct net_device *lo;
	int error = -ENODEV;

	rtnl_lock();
	lo = __dev_get_by_name(&init_net, "lo");
	if (lo)
		error = dev_change_flags(lo, lo->flags | IFF_UP, NULL);
	rtnl_unlock();
	if (error)
		say("kdyno-path-error lo %pe\n", ERR_PTR(error));
}

static int __init kdyno_main(void *unused)
{
	int error;

	repetitions = clamp(repetitions, 1, MAX_REPETITIONS);
	say("kdyno-paths 1 %s %u\n", init_utsname()->release, all(NULL));
	check_names();
	if (huge)
		move_to_huge_pages();
	error = make_buffers();
	if (error) {
		say("kdyno-path-error buffers %pe\n", ERR_PTR(error));
	} else if (list) {
		all(visit_to_list);
	} else {
		mount_all();
		loopback_up();
		all(visit_to_measure);
	}
	say("kdyno-paths done\n");
	kernel_power_off();
	return 0;
}

static int __init kdyno_init(void)
{
	struct task_struct *driver = kthread_run(kdyno_main, NULL, "kdyno");
	DECLARE_COMPLETION_ONSTACK(never);

	if (IS_ERR(driver))
		return PTR_ERR(driver);
	/* The kernel frees __init functions if this one returns. */
	wait_for_completion(&never);
	return 0;
}
late_initcall_sync(kdyno_init);
