// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory, and random content for it. */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static word random_state;

void seed_random(word seed)
{
	random_state = seed;
}

/* splitmix64 (Steele, Lea, Flood, 2014). */
word lab_random(void)
{
	word mixed = random_state += 0x9e3779b97f4a7c15UL;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9UL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebUL;
	return mixed ^ mixed >> 31;
}

void fail(const char *what)
{
	perror(what);
	exit(REFUSED);
}

byte *pages(word bytes)
{
	byte *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		fail("mmap");
	madvise(start, bytes, MADV_NOHUGEPAGE);
	return start;
}

void randomise(byte *at, word bytes)
{
	for (word done = 0; done < bytes; done += sizeof(word)) {
		word value = lab_random();
		memcpy(at + done, &value, bytes - done < sizeof(word) ? bytes - done : sizeof(word));
	}
}
