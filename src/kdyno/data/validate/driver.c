// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs loads, without a C library, so that no name of the kernel's meets one of its own.
 *
 *   PROGRAM list                 names of the loads, one a line
 *   PROGRAM native INDEX TURNS   of each turn: ticks of the time-stamp counter, and of a chain of BEAT additions
 *                                before and after
 *   PROGRAM marked TURNS         every load, between markers (crates/marker); no times
 *
 * `native` and `marked` end with a line of digests of the loads' first CHECKED turns. Status 2: can't be run so.
 */
#include "load.h"
#include "../clock.h"

typedef unsigned long word;

enum { WARM_UPS = 2, CHECKED = 8, PREPARING = 0x7fff };
enum { WRITE = 1, SCHED_SETAFFINITY = 203, EXIT = 231, GETCPU = 309 };

static word system_call(word number, word a, word b, word c)
{
	word result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static __attribute__((noreturn)) void leave(int status)
{
	for (;;)
		system_call(EXIT, (word)status, 0, 0);
}

/* What x86 kernels have in assembler; of the tree's own string.c, if that is what is measured. */
__attribute__((weak)) void *memcpy(void *to, const void *from, word size)
{
	void *at = to;
	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

__attribute__((weak)) void *memset(void *to, int byte, word size)
{
	void *at = to;
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(byte) : "memory");
	return to;
}

__attribute__((weak)) void *memmove(void *to, const void *from, word size)
{
	if ((word)to - (word)from >= size)
		return memcpy(to, from, size);
	char *at = (char *)to + size - 1;
	const char *last = (const char *)from + size - 1;
	__asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(at), "+S"(last), "+c"(size) : : "memory");
	return to;
}

__attribute__((weak)) int memcmp(const void *a, const void *b, word size)
{
	const unsigned char *one = a, *other = b;
	for (; size; size--, one++, other++)
		if (*one != *other)
			return *one - *other;
	return 0;
}

/* clang's name for it where only equality counts. */
__attribute__((weak)) int bcmp(const void *a, const void *b, word size)
{
	return memcmp(a, b, size);
}

/* Code of the tree that no load reaches wants it. */
__attribute__((weak)) int snprintf(char *to, word size, const char *format, ...)
{
	(void)to, (void)size, (void)format;
	leave(3);
}

static char text[1 << 16];
static word filled;

static void flush(void)
{
	for (word done = 0; done < filled;) {
		long written = (long)system_call(WRITE, 1, (word)text + done, filled - done);
		if (written <= 0)
			leave(3);
		done += (word)written;
	}
	filled = 0;
}

static void say(const char *what)
{
	for (; *what; what++) {
		if (filled == sizeof(text))
			flush();
		text[filled++] = *what;
	}
}

static void say_number(word number, const char *end)
{
	char digits[24];
	int at = sizeof(digits);
	digits[--at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	say(digits + at);
	say(end);
}

static word state;

/* splitmix64 (Steele, Lea, Flood, 2014). */
word harness_random(void)
{
	word mixed = state += 0x9e3779b97f4a7c15UL;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9UL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebUL;
	return mixed ^ mixed >> 31;
}

/* FNV-1a, of 64 bits. */
word harness_digest(const void *at, word size)
{
	word digest = 0xcbf29ce484222325UL;
	for (const unsigned char *byte = at; size; size--)
		digest = (digest ^ *byte++) * 0x100000001b3UL;
	return digest;
}

static void prepare(const struct load *load, word turn)
{
	state = turn * 0x632be59bd9b4e019UL;
	load->prepare();
}

static word digest_of(const struct load *load, word digest, word result)
{
	digest = harness_mix(digest, result);
	return load->check ? harness_mix(digest, load->check()) : digest;
}

static void stay_on_one_cpu(void)
{
	unsigned cpu = 0;
	word set[16] = {0};
	system_call(GETCPU, (word)&cpu, 0, 0);
	set[cpu / 64 % 16] = 1UL << cpu % 64;
	system_call(SCHED_SETAFFINITY, 0, sizeof(set), (word)set);
}

static void native(const struct load *load, word turns)
{
	word digest = 0, all = turns + WARM_UPS < CHECKED ? CHECKED : turns + WARM_UPS;
	stay_on_one_cpu();
	for (word turn = 0; turn < all; turn++) {
		prepare(load, turn);
		word before = beat(), start = ticks();
		word result = load->run();
		word taken = ticks() - start, after = beat();
		if (turn < CHECKED)
			digest = digest_of(load, digest, result);
		if (turn < all - turns)
			continue;
		say_number(taken, " ");
		say_number(before, " ");
		say_number(after, "\n");
	}
	say_number(digest, "\n");
}

static void announce(word index, word turn)
{
	word announced = index << 16 | turn;
	for (int bit = 31; bit >= 0; bit--)
		if (announced >> bit & 1)
			__asm__ volatile(".byte 0x66, 0x87, 0xd2");
		else
			__asm__ volatile(".byte 0x66, 0x87, 0xf6");
}

#define OPEN() __asm__ volatile(".byte 0x66, 0x87, 0xdb" : : : "memory")
#define CLOSE() __asm__ volatile(".byte 0x66, 0x87, 0xc9" : : : "memory")

/* What prepares is marked too, as another benchmark: it warms the emulated caches as it does the real ones. */
static void marked(const struct load *load, word index, word turns)
{
	word digest = 0;
	for (word turn = 0; turn < turns; turn++) {
		announce(PREPARING, 0);
		OPEN();
		prepare(load, turn);
		CLOSE();
		announce(index, turn);
		OPEN();
		word result = load->run();
		CLOSE();
		if (turn < CHECKED)
			digest = digest_of(load, digest, result);
	}
	say_number(digest, "\n");
}

static int is(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

static word number(const char *digits)
{
	word value = 0;
	for (; *digits; digits++)
		value = 10 * value + (word)(*digits - '0');
	return value;
}

__attribute__((used)) static void begin(word *stack)
{
	word count = stack[0], known = 0;
	char **argument = (char **)(stack + 1);
	while (loads[known].name)
		known++;
	if (count == 2 && is(argument[1], "list")) {
		for (word index = 0; index < known; index++) {
			say(loads[index].name);
			say("\n");
		}
	} else if (count == 4 && is(argument[1], "native") && number(argument[2]) < known) {
		native(&loads[number(argument[2])], number(argument[3]));
	} else if (count == 3 && is(argument[1], "marked")) {
		for (word index = 0; index < known; index++)
			marked(&loads[index], index, number(argument[2]));
	} else {
		leave(2);
	}
	flush();
	leave(0);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");
