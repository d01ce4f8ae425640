/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of an x86-64 kernel that files of lib/ ask for. */
#define CONFIG_64BIT 1
#define CONFIG_X86 1
#define CONFIG_X86_64 1
#define CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS 1
#define CONFIG_DCACHE_WORD_ACCESS 1
#define CONFIG_ARCH_HAS_FAST_MULTIPLIER 1
