// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's code and memory in huge pages, as a kernel that is no process
 * has them. Pages of 4 kB lie at other places of the caches in each boot, and
 * those of the code as long as its file is cached.
 *
 * This is code for the host: it includes headers of libc.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "huge_user.h"

#define SMALL	0x1000UL
#define HUGE	0x200000UL

#define ALL	(PROT_READ | PROT_WRITE | PROT_EXEC)
#define PRIVATE	(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static int is_used(void *page)
{
	unsigned char resident[HUGE / SMALL];
	size_t i;

	if (mincore(page, HUGE, resident) < 0)
		return -errno;
	for (i = 0; i < sizeof(resident); i++) {
		if (resident[i] & 1)
			return 1;
	}
	return 0;
}

/* There are holes between the segments of an image. */
static void copy_small_pages(void *to, void *from)
{
	unsigned char resident;
	size_t at;

	for (at = 0; at < HUGE; at += SMALL) {
		if (!mincore(from + at, SMALL, &resident))
			memcpy(to + at, from + at, SMALL);
	}
}

/* Nothing else runs meanwhile: the copy is the page. */
static int move(void *page, void *room)
{
	void *copy = (void *)(((unsigned long)room + HUGE - 1) & -HUGE);

	if (mmap(copy, HUGE, ALL, PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	if (madvise(copy, HUGE, MADV_HUGEPAGE) < 0)
		return -errno;
	copy_small_pages(copy, page);
	if (mremap(copy, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) ==
	    MAP_FAILED)
		return -errno;
	return 0;
}

static int replace(void *page)
{
	if (mmap(page, HUGE, ALL, PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	return madvise(page, HUGE, MADV_HUGEPAGE) < 0 ? -errno : 0;
}

int kdyno_move_to_huge_pages(unsigned long start, unsigned long end,
			     int is_image)
{
	unsigned long at, stack = (unsigned long)__builtin_frame_address(0);
	void *room = mmap(NULL, 2 * HUGE, PROT_NONE, PRIVATE, -1, 0);
	int moved = 0, error = 0;

	if (room == MAP_FAILED)
		return -errno;
	for (at = (start + HUGE - 1) & -HUGE; at + HUGE <= end; at += HUGE) {
		/* The frames below this one may be in the page before it. */
		if (stack - at < HUGE || stack - SMALL - at < HUGE)
			continue;
		error = is_image ? 1 : is_used((void *)at);
		if (error > 0)
			error = move((void *)at, room);
		else if (!error)
			error = replace((void *)at);
		if (error)
			break;
		moved++;
	}
	munmap(room, 2 * HUGE);
	return error ?: moved;
}
