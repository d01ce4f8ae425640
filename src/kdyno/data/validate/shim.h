/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What files of a kernel's lib/ expect of the headers that can't be used outside of a kernel build. kdyno puts a header
 * of each such name before the tree's own, and all of them include this one. Interfaces of the tested code itself
 * (list.h, rbtree.h, ...) are the tree's.
 */
#ifndef KDYNO_SHIM_H
#define KDYNO_SHIM_H

#include <stdarg.h>

/* types */
typedef unsigned char u8, __u8, uint8_t, u_char;
typedef unsigned short u16, __u16, uint16_t;
typedef unsigned int u32, __u32, uint32_t, uint, gfp_t;
typedef unsigned long long u64, __u64;
typedef unsigned long uint64_t, uintptr_t, size_t, ulong, __kernel_size_t;
typedef signed char s8, int8_t;
typedef short s16, int16_t;
typedef int s32, __s32, int32_t, pid_t;
typedef long long s64, __s64, loff_t;
typedef long int64_t, ssize_t, ptrdiff_t, intptr_t;
typedef u16 __le16, __be16, __sum16;
typedef u32 __le32, __be32, __wsum;
typedef u64 __le64, __be64;
typedef _Bool bool;
enum { false, true };
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
typedef void (*swap_r_func_t)(void *a, void *b, int size, const void *priv);
typedef void (*swap_func_t)(void *a, void *b, int size);
typedef int (*cmp_r_func_t)(const void *a, const void *b, const void *priv);
typedef int (*cmp_func_t)(const void *a, const void *b);
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define BITS_PER_LONG 64
#define BITS_PER_LONG_LONG 64
#define PAGE_SIZE 4096UL
#define __LITTLE_ENDIAN 1234
#define __BITS_PER_LONG 64

/* the compiler */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" : : : "memory")
#define inline inline __attribute__((__gnu_inline__, __unused__, __no_instrument_function__))
#define __inline__ inline
#define __always_inline inline __attribute__((__always_inline__))
#define noinline __attribute__((__noinline__))
#define __pure __attribute__((__pure__))
#define __attribute_const__ __attribute__((__const__))
#define __weak __attribute__((__weak__))
#define __alias(symbol) __attribute__((__alias__(#symbol)))
#define __aligned(x) __attribute__((__aligned__(x)))
#define ____cacheline_aligned __aligned(64)
#define __packed __attribute__((__packed__))
#define __maybe_unused __attribute__((__unused__))
#define __must_check __attribute__((__warn_unused_result__))
#define __used __attribute__((__used__))
#define __visible __attribute__((__externally_visible__))
#define fallthrough __attribute__((__fallthrough__))
#define __force
#define __user
#define __rcu
#define __init
#define __initdata
#define __exit
#define __kprobes
#define __private
#define __nonstring
#define __counted_by(member)
#define __no_kasan_or_inline inline
#define __no_sanitize_or_inline inline
#define __cold
#define asmlinkage
#define notrace
#define __same_type(a, b) __builtin_types_compatible_p(typeof(a), typeof(b))
#define __native_word(t) (sizeof(t) <= 8)
#define __must_be_array(a) 0
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define compiletime_assert(condition, message) _Static_assert(condition, message)
#define statically_true(x) (__builtin_constant_p(x) && (x))
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
#define data_race(x) (x)
#define OPTIMIZER_HIDE_VAR(x) __asm__("" : "=r"(x) : "0"(x))
#define RELOC_HIDE(pointer, offset) ((typeof(pointer))((unsigned long)(pointer) + (offset)))
#define __ADDRESSABLE(symbol)
static inline unsigned long read_word_at_a_time(const void *at) { return *(const unsigned long *)at; }

/* memory order: one thread */
#define smp_store_release(pointer, value) do { barrier(); WRITE_ONCE(*(pointer), value); } while (0)
#define smp_load_acquire(pointer) ({ typeof(*(pointer)) read_ = READ_ONCE(*(pointer)); barrier(); read_; })
#define rcu_assign_pointer(pointer, value) smp_store_release(&(pointer), value)
#define rcu_dereference_raw(pointer) READ_ONCE(pointer)
#define rcu_dereference_check(pointer, condition) READ_ONCE(pointer)

/* modules, traces, bugs */
#define EXPORT_SYMBOL(symbol)
#define EXPORT_SYMBOL_GPL(symbol)
#define EXPORT_SYMBOL_NS(symbol, space)
#define EXPORT_SYMBOL_NS_GPL(symbol, space)
#define NOKPROBE_SYMBOL(symbol)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_AUTHOR(text)
#define MODULE_INFO(tag, text)
#define module_init(function)
#define module_exit(function)
#define module_param(name, type, mode)
#define BUG() __builtin_trap()
#define BUG_ON(x) do { if (unlikely(x)) BUG(); } while (0)
#define WARN_ON(x) ({ bool warned_ = !!(x); if (unlikely(warned_)) BUG(); warned_; })
#define WARN_ON_ONCE(x) WARN_ON(x)
#define WARN_ONCE(x, ...) WARN_ON(x)
#define WARN(x, ...) WARN_ON(x)
#define might_sleep()
#define cond_resched()
#define fortify_panic(...) BUG()
#define EXPORT_STATIC_CALL(name)
#define DECLARE_STATIC_KEY_TRUE(key)
#define DEFINE_STATIC_KEY_TRUE(key)
#define static_branch_likely(key) 1
#define _ASM_EXTABLE_TYPE(from, to, type)
#define _ASM_EXTABLE(from, to)

/* numbers */
#define EPERM 1
#define ENOENT 2
#define E2BIG 7
#define ENOMEM 12
#define EFAULT 14
#define EINVAL 22
#define ERANGE 34
#define USHRT_MAX ((unsigned short)~0U)
#define INT_MAX ((int)(~0U >> 1))
#define UINT_MAX (~0U)
#define LONG_MAX ((long)(~0UL >> 1))
#define ULONG_MAX (~0UL)
#define LLONG_MAX ((long long)(~0ULL >> 1))
#define ULLONG_MAX (~0ULL)
#define SIZE_MAX (~(size_t)0)
#define U8_MAX ((u8)~0U)
#define U16_MAX ((u16)~0U)
#define U32_MAX ((u32)~0U)
#define U64_MAX ((u64)~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (63 - (high))))
#define min(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(x, low, high) min(max(x, low), high)
#ifdef KDYNO_SWAP /* not where a parameter is called so */
#define swap(a, b) do { typeof(a) swapped_ = (a); (a) = (b); (b) = swapped_; } while (0)
#endif
#define ALIGN(x, a) (((x) + (a) - 1) & ~((typeof(x))(a) - 1))
#define IS_ALIGNED(x, a) (((x) & ((typeof(x))(a) - 1)) == 0)
#define PTR_ALIGN(p, a) ((typeof(p))ALIGN((unsigned long)(p), (a)))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define round_down(x, y) ((x) & ~((typeof(x))(y) - 1))
#define abs(x) ({ typeof(x) x_ = (x); x_ < 0 ? -x_ : x_; })
#define is_power_of_2(n) ((n) != 0 && ((n) & ((n) - 1)) == 0)
static inline u64 div_u64(u64 dividend, u32 divisor) { return dividend / divisor; }
static inline u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *rest)
{
	*rest = dividend % divisor;
	return dividend / divisor;
}

/* bits and bytes */
static __always_inline unsigned long __ffs(unsigned long x) { return __builtin_ctzl(x); }
static __always_inline unsigned long __fls(unsigned long x) { return 63 - __builtin_clzl(x); }
static __always_inline unsigned long ffz(unsigned long x) { return __ffs(~x); }
static __always_inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static __always_inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static __always_inline u64 rol64(u64 x, unsigned int by) { return x << (by & 63) | x >> (-by & 63); }
static __always_inline u64 ror64(u64 x, unsigned int by) { return x >> (by & 63) | x << (-by & 63); }
static __always_inline u32 rol32(u32 x, unsigned int by) { return x << (by & 31) | x >> (-by & 31); }
static __always_inline u32 ror32(u32 x, unsigned int by) { return x >> (by & 31) | x << (-by & 31); }
#define swab16(x) __builtin_bswap16(x)
#define swab32(x) __builtin_bswap32(x)
#define swab64(x) __builtin_bswap64(x)
#define cpu_to_le16(x) ((u16)(x))
#define cpu_to_le32(x) ((u32)(x))
#define cpu_to_le64(x) ((u64)(x))
#define le16_to_cpu(x) ((u16)(x))
#define le32_to_cpu(x) ((u32)(x))
#define le64_to_cpu(x) ((u64)(x))
#define le16_to_cpup(p) (*(const u16 *)(p))
#define le32_to_cpup(p) (*(const u32 *)(p))
#define le64_to_cpup(p) (*(const u64 *)(p))
#define cpu_to_be32(x) swab32(x)
#define cpu_to_be64(x) swab64(x)
#define be32_to_cpu(x) swab32(x)
#define be64_to_cpu(x) swab64(x)
#define __cpu_to_le32(x) cpu_to_le32(x)
#define __cpu_to_be32(x) cpu_to_be32(x)
#define __le32_to_cpu(x) le32_to_cpu(x)
#define __be32_to_cpu(x) be32_to_cpu(x)
#define bytemask_from_count(count) (~(~0UL << (count) * 8))
#define get_unaligned(p) ({ const struct { typeof(*(p)) x; } __packed *p_ = (const void *)(p); p_->x; })
#define put_unaligned(value, p) ({ struct { typeof(*(p)) x; } __packed *p_ = (void *)(p); p_->x = (value); })
static inline u16 get_unaligned_le16(const void *p) { return get_unaligned((const u16 *)p); }
static inline u32 get_unaligned_le32(const void *p) { return get_unaligned((const u32 *)p); }
static inline u64 get_unaligned_le64(const void *p) { return get_unaligned((const u64 *)p); }
static inline u32 get_unaligned_be32(const void *p) { return swab32(get_unaligned((const u32 *)p)); }
static inline u64 get_unaligned_be64(const void *p) { return swab64(get_unaligned((const u64 *)p)); }
static inline void put_unaligned_le16(u16 x, void *p) { put_unaligned(x, (u16 *)p); }
static inline void put_unaligned_le32(u32 x, void *p) { put_unaligned(x, (u32 *)p); }
static inline void put_unaligned_le64(u64 x, void *p) { put_unaligned(x, (u64 *)p); }
static inline void put_unaligned_be32(u32 x, void *p) { put_unaligned(swab32(x), (u32 *)p); }
static inline void put_unaligned_be64(u64 x, void *p) { put_unaligned(swab64(x), (u64 *)p); }

/* strings: x86 has assembler for memcpy and memset; the driver stands in for it */
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *at, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memchr(const void *at, int byte, size_t size);
void *memscan(void *at, int byte, size_t size);
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t most);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t most);
int strcasecmp(const char *a, const char *b);
char *strchr(const char *text, int character);
char *strchrnul(const char *text, int character);
char *strstr(const char *text, const char *part);
char *strnstr(const char *text, const char *part, size_t most);
ssize_t strscpy(char *to, const char *from, size_t size);
ssize_t sized_strscpy(char *to, const char *from, size_t size);
static inline void memzero_explicit(void *at, size_t size) { memset(at, 0, size); barrier(); }
int snprintf(char *to, size_t size, const char *format, ...);
static inline unsigned long copy_from_user(void *to, const void *from, unsigned long size)
{
	memcpy(to, from, size);
	return 0;
}

/* hexadecimal digits, in trees that have no header for them */
#if __has_include(<linux/hex.h>)
#include <linux/hex.h>
#else
extern const char hex_asc[], hex_asc_upper[];
#define hex_asc_lo(x) hex_asc[(x) & 0x0f]
#define hex_asc_hi(x) hex_asc[((x) & 0xf0) >> 4]
static inline char *hex_byte_pack(char *to, u8 byte)
{
	*to++ = hex_asc_hi(byte);
	*to++ = hex_asc_lo(byte);
	return to;
}
int hex_to_bin(unsigned char digit);
int hex2bin(u8 *to, const char *from, size_t count);
char *bin2hex(char *to, const void *from, size_t count);
#endif

/* the crypto API, which nothing here uses */
struct crypto_shash;
struct shash_desc { struct crypto_shash *tfm; void *ctx; };
static inline void *shash_desc_ctx(struct shash_desc *desc) { return desc->ctx; }
static inline unsigned int crypto_shash_digestsize(struct crypto_shash *tfm) { return 0; }
#define SHASH_DESC_ON_STACK(name, tfm) struct shash_desc name[1]

#include <linux/build_bug.h>

#endif
