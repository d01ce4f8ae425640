// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sort: few elements by insertion, more by a heap whose sifting goes down to a leaf first. Elements of four or eight
 * bytes are moved as words. Only elements in the array are compared, as a caller may rely on their addresses.
 */
#include "rewrite.h"

#define FEW 24

struct array {
	u8 *first;
	size_t width;
	cmp_func_t compare;
	swap_func_t swap;
	/* True if elements can be swapped as aligned words of 8 or 4 bytes. */
	int has_words, has_halves;
};

static inline __attribute__((always_inline)) void exchange(const struct array *array, u8 *one, u8 *other)
{
	if (array->has_words) {
		u64 kept = *(u64 *)one;
		*(u64 *)one = *(u64 *)other;
		*(u64 *)other = kept;
	} else if (array->has_halves) {
		u32 kept = *(u32 *)one;
		*(u32 *)one = *(u32 *)other;
		*(u32 *)other = kept;
	} else if (array->swap) {
		array->swap(one, other, (int)array->width);
	} else {
		for (size_t index = 0; index < array->width; index++) {
			u8 kept = one[index];
			one[index] = other[index];
			other[index] = kept;
		}
	}
}

static void insert_all(const struct array *array, size_t count)
{
	u8 *end = array->first + count * array->width;
	for (u8 *next = array->first + array->width; next < end; next += array->width)
		for (u8 *at = next; at > array->first; at -= array->width) {
			if (array->compare(at - array->width, at) <= 0)
				break;
			exchange(array, at - array->width, at);
		}
}

/* Take the element at a place down in the heap of `count`, to where it belongs. */
static void sift(const struct array *array, size_t place, size_t count)
{
	u8 *first = array->first;
	size_t width = array->width, leaf = place;

	while (2 * leaf + 2 < count) {
		u8 *left = first + (2 * leaf + 1) * width;
		leaf = 2 * leaf + 1 + (array->compare(left, left + width) < 0);
	}
	if (2 * leaf + 2 == count)
		leaf = 2 * leaf + 1;
	while (leaf != place && array->compare(first + place * width, first + leaf * width) >= 0)
		leaf = (leaf - 1) / 2;
	/* The path from the leaf up to the place moves up by one; the element comes to its end. */
	for (size_t end = leaf; leaf != place;) {
		leaf = (leaf - 1) / 2;
		exchange(array, first + leaf * width, first + end * width);
	}
}

void sort(void *base, size_t count, size_t width, cmp_func_t compare, swap_func_t swap)
{
	struct array array = {base, width, compare, swap, 0, 0};

	array.has_words = !swap && width == 8 && !((u64)base & 7);
	array.has_halves = !swap && width == 4 && !((u64)base & 3);
	if (count <= FEW) {
		insert_all(&array, count);
		return;
	}
	for (size_t place = count / 2; place--;)
		sift(&array, place, count);
	while (--count) {
		exchange(&array, array.first, array.first + count * width);
		sift(&array, 0, count);
	}
}
