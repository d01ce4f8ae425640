// SPDX-License-Identifier: GPL-2.0
/* The scheduler: threads that wait for each other, timers and work. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "kdyno_paths.h"

#define THREADS		16
#define TIMERS		256
#define MAX_COUNT	4096

static struct task_struct *threads[THREADS];
static bool over;

static struct completion there;
static struct completion back;

static DECLARE_WAIT_QUEUE_HEAD(crowd);
static unsigned int round;
static atomic_t awaited;

static struct timer_list timers[TIMERS];
static struct hrtimer hrtimers[TIMERS];
static u32 which[MAX_COUNT];
static u32 delays[MAX_COUNT];

static struct workqueue_struct *queue;
static struct work_struct work;

static int answer(void *unused)
{
	for (;;) {
		wait_for_completion(&there);
		if (over)
			return 0;
		complete(&back);
	}
}

static int setup_completion(const struct kdyno_path *path)
{
	over = false;
	init_completion(&there);
	init_completion(&back);
	threads[0] = kdyno_thread(answer, NULL);
	return PTR_ERR_OR_ZERO(threads[0]);
}

static int run_completion(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		complete(&there);
		wait_for_completion(&back);
	}
	return 0;
}

static void teardown_completion(const struct kdyno_path *path)
{
	over = true;
	complete(&there);
	kdyno_thread_end(&threads[0]);
}

static int attend(void *unused)
{
	unsigned int seen = 0;

	for (;;) {
		wait_event(crowd, READ_ONCE(round) != seen);
		if (over)
			return 0;
		seen = READ_ONCE(round);
		if (atomic_dec_and_test(&awaited))
			complete(&back);
	}
}

static int setup_crowd(const struct kdyno_path *path)
{
	unsigned int i;

	over = false;
	round = 0;
	init_completion(&back);
	for (i = 0; i < THREADS; i++) {
		threads[i] = kdyno_thread(attend, NULL);
		if (IS_ERR(threads[i]))
			return PTR_ERR(threads[i]);
	}
	return 0;
}

static int run_crowd(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		atomic_set(&awaited, THREADS);
		WRITE_ONCE(round, round + 1);
		wake_up_all(&crowd);
		wait_for_completion(&back);
	}
	return 0;
}

static void teardown_crowd(const struct kdyno_path *path)
{
	unsigned int i;

	over = true;
	WRITE_ONCE(round, round + 1);
	wake_up_all(&crowd);
	for (i = 0; i < THREADS; i++)
		kdyno_thread_end(&threads[i]);
}

static void timer_expired(struct timer_list *timer)
{
}

static enum hrtimer_restart hrtimer_expired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static int setup_timers(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		timer_setup(&timers[i], timer_expired, 0);
#if KDYNO_LINUX >= 6013
		hrtimer_setup(&hrtimers[i], hrtimer_expired, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL);
#else
		hrtimer_init(&hrtimers[i], CLOCK_MONOTONIC, HRTIMER_MODE_REL);
		hrtimers[i].function = hrtimer_expired;
#endif
	}
	return 0;
}

static int prepare_timers(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		which[i] = kdyno_below(TIMERS);
		delays[i] = 1000 + kdyno_below(100000);
	}
	return 0;
}

static void cancel_timers(void)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		timer_delete_sync(&timers[i]);
		hrtimer_cancel(&hrtimers[i]);
	}
}

/* Timers of the last operations are still armed when one is armed. */
static int run_timers(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		mod_timer(&timers[which[i]], jiffies + delays[i]);
		if (i >= TIMERS / 2)
			timer_delete(&timers[which[i - TIMERS / 2]]);
	}
	return 0;
}

static int run_hrtimers(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		hrtimer_start(&hrtimers[which[i]],
			      ns_to_ktime((u64)delays[i] * NSEC_PER_MSEC),
			      HRTIMER_MODE_REL);
		if (i >= TIMERS / 2)
			hrtimer_cancel(&hrtimers[which[i - TIMERS / 2]]);
	}
	return 0;
}

static void teardown_timers(const struct kdyno_path *path)
{
	cancel_timers();
}

static void do_work(struct work_struct *unused)
{
	kdyno_sink++;
}

static int setup_work(const struct kdyno_path *path)
{
	INIT_WORK(&work, do_work);
	queue = alloc_workqueue("kdyno", WQ_UNBOUND, 1);
	return queue ? 0 : -ENOMEM;
}

static int run_work(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		queue_work(queue, &work);
		flush_work(&work);
	}
	return 0;
}

static void teardown_work(const struct kdyno_path *path)
{
	if (queue)
		destroy_workqueue(queue);
	queue = NULL;
}

static int nothing(void *unused)
{
	return 0;
}

static int run_thread(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		struct task_struct *thread = kdyno_thread(nothing, NULL);

		if (IS_ERR(thread))
			return PTR_ERR(thread);
		kdyno_thread_end(&thread);
	}
	return 0;
}

static const struct kdyno_path rows[] = {
	{
		.name = "completion_ping",
		.operation = "completion for another thread and one back",
		.count = 1000,
		.setup = setup_completion,
		.run = run_completion,
		.teardown = teardown_completion,
	}, {
		.name = "wake_16",
		.operation = "16 threads woken at once, and the last one waited for",
		.count = 120,
		.setup = setup_crowd,
		.run = run_crowd,
		.teardown = teardown_crowd,
	}, {
		.name = "timer",
		.operation = "timer armed and another one cancelled",
		.count = 4096,
		.setup = setup_timers,
		.prepare = prepare_timers,
		.run = run_timers,
		.teardown = teardown_timers,
	}, {
		.name = "hrtimer",
		.operation = "high resolution timer armed and another one cancelled",
		.count = 2048,
		.setup = setup_timers,
		.prepare = prepare_timers,
		.run = run_hrtimers,
		.teardown = teardown_timers,
	}, {
		.name = "work",
		.operation = "work queued and waited for",
		.count = 800,
		.setup = setup_work,
		.run = run_work,
		.teardown = teardown_work,
	}, {
		.name = "thread",
		.operation = "kernel thread made, run and reaped",
		.count = 80,
		.run = run_thread,
	},
	{ }
};

const struct kdyno_group kdyno_sched = { "sched", rows };
