/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the C files of the routines expect beyond data/validate/shim.h. */
#ifndef KDYNO_LAB_LIBRARY_H
#define KDYNO_LAB_LIBRARY_H

/* bits */
#include "../rewrites/hweight.h"
#define BITMAP_FIRST_WORD_MASK(start) (~0UL << ((start) & (BITS_PER_LONG - 1)))
#define BITMAP_LAST_WORD_MASK(bits) (~0UL >> (-(bits) & (BITS_PER_LONG - 1)))
#define swab(word) __builtin_bswap64(word)
static inline unsigned long fns(unsigned long word, unsigned int n)
{
	for (; word; word &= word - 1)
		if (!n--)
			return __ffs(word);
	return BITS_PER_LONG;
}

unsigned long find_next_bit(const unsigned long *at, unsigned long bits, unsigned long start);
unsigned long bitmap_get_value8(const unsigned long *at, unsigned long start);

/* the other functions of lib/bitmap.c, which are dropped */
#define BIT_WORD(bit) ((bit) / BITS_PER_LONG)
#define BITS_TO_LONGS(bits) DIV_ROUND_UP(bits, BITS_PER_LONG)
#define __ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define for_each_set_bit(bit, at, bits) for ((bit) = 0; (bit) < (bits); (bit)++)
#define __GFP_ZERO 0
struct device;
unsigned long find_next_zero_bit(const unsigned long *at, unsigned long bits, unsigned long start);
unsigned long find_nth_bit(const unsigned long *at, unsigned long bits, unsigned long n);
unsigned int bitmap_weight(const unsigned long *at, unsigned int bits);
void bitmap_zero(unsigned long *at, unsigned int bits);
bool test_bit(long bit, const unsigned long *at);
void set_bit(long bit, unsigned long *at);
void *kmalloc_array(size_t count, size_t size, gfp_t flags);
void *kmalloc_array_node(size_t count, size_t size, gfp_t flags, int node);
void kfree(const void *at);
int devm_add_action_or_reset(struct device *device, void (*action)(void *), void *data);

/* sums */
static inline u16 csum_fold(u32 sum)
{
	sum = (sum >> 16) + (sum & 0xffff);
	return (u16)~(sum + (sum >> 16));
}

#define cpu_to_le32p(at) (*(const u32 *)(at))

/* the crypto API, of which only the summing functions are used */
struct module;
struct crypto_tfm;
struct crypto_alg {
	const char *cra_name, *cra_driver_name;
	int cra_priority, cra_flags, cra_blocksize, cra_ctxsize;
	struct module *cra_module;
	int (*cra_init)(struct crypto_tfm *);
};
struct crypto_shash;
struct shash_alg {
	int (*setkey)(struct crypto_shash *, const u8 *, unsigned int);
	int (*init)(struct shash_desc *);
	int (*update)(struct shash_desc *, const u8 *, unsigned int);
	int (*final)(struct shash_desc *, u8 *);
	int (*finup)(struct shash_desc *, const u8 *, unsigned int, u8 *);
	int (*digest)(struct shash_desc *, const u8 *, unsigned int, u8 *);
	int descsize, digestsize;
	struct crypto_alg base;
};
struct x86_cpu_id { int feature; };
#define THIS_MODULE ((struct module *)0)
#define CRYPTO_ALG_OPTIONAL_KEY 0
#define ENODEV 19
#define X86_FEATURE_XMM4_2 1
#define X86_FEATURE_PCLMULQDQ 2
#define X86_MATCH_FEATURE(feature, data) { feature }
#define MODULE_DEVICE_TABLE(kind, table)
#define MODULE_ALIAS_CRYPTO(name)
#define crypto_shash_ctx(tfm) ((void *)(tfm))
#define crypto_tfm_ctx(tfm) ((void *)(tfm))
#define crypto_simd_usable() 0
#define kernel_fpu_begin()
#define kernel_fpu_end()
#define boot_cpu_has(feature) 0
#define x86_match_cpu(table) ((table)->feature)
#define crypto_register_shash(alg) ((void)(alg), 0)
#define crypto_unregister_shash(alg) ((void)(alg))

#endif
