/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel's process asks of its host: the two sides share this. */
#ifndef KDYNO_HUGE_USER_H
#define KDYNO_HUGE_USER_H

/*
 * Move memory of this process to huge pages, which takes whole ones that the
 * stack isn't in: how many, or an error of the host. What is not an image and
 * isn't in memory is zero.
 */
int kdyno_move_to_huge_pages(unsigned long start, unsigned long end,
			     int is_image);

#endif
