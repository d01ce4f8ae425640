/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the C files of the routines expect beyond data/validate/shim.h. */
#ifndef KDYNO_LAB_LIBRARY_H
#define KDYNO_LAB_LIBRARY_H

/* bits */
#define BITMAP_FIRST_WORD_MASK(start) (~0UL << ((start) & (BITS_PER_LONG - 1)))
#define BITMAP_LAST_WORD_MASK(bits) (~0UL >> (-(bits) & (BITS_PER_LONG - 1)))
#define hweight_long(word) ((unsigned long)__builtin_popcountl(word))
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
