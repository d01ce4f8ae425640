// SPDX-License-Identifier: GPL-2.0
/* Functions of lib/, in loops over fresh data. */
#include <linux/bitmap.h>
#include <linux/bsearch.h>
#include <linux/crc32.h>
#include <linux/kstrtox.h>
#include <linux/list.h>
#include <linux/list_sort.h>
#include <linux/lz4.h>
#include <linux/siphash.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/xxhash.h>
#include <linux/zstd.h>
#include <crypto/chacha.h>
#include <crypto/sha2.h>
#include <net/checksum.h>

#include "kdyno_paths.h"

#define MAX_COUNT	8192
#define NUMBERS		1000
#define ARRAYS		8
#define BITS		4096
#define TEXT		65536
#define LEVEL		3
#define LETTERS		2048
#define WORDS		256

struct item {
	struct list_head list;
	u32 key;
};

static u32 numbers[ARRAYS][NUMBERS];
static struct item items[ARRAYS][NUMBERS];
static struct list_head lists[ARRAYS];
static u64 words[MAX_COUNT];
static u32 places[MAX_COUNT];
static char digits[MAX_COUNT][24];
static DECLARE_BITMAP(bits, BITS);

static u8 letters[LETTERS];
static u32 starts[WORDS];
static u32 lengths[WORDS];

static void *workspace;
static size_t packed;
static zstd_parameters zstd;
static zstd_cctx *zstd_packer;
static zstd_dctx *zstd_unpacker;

/* Data that starts at another place each time, where only its size matters. */
static int prepare_data(const struct kdyno_path *path)
{
	unsigned int i;

	kdyno_fill(kdyno_from, TEXT);
	for (i = 0; i < path->count; i++)
		places[i] = kdyno_below(TEXT - path->size);
	return 0;
}

static void make_vocabulary(void)
{
	unsigned int i;

	for (i = 0; i < LETTERS; i++)
		letters[i] = 'a' + kdyno_below(26);
	for (i = 0; i < WORDS; i++) {
		lengths[i] = 2 + kdyno_below(8);
		starts[i] = kdyno_below(LETTERS - lengths[i]);
	}
}

/* Words of a small vocabulary, which pack about as well as source code. */
static void make_text(void)
{
	unsigned int at = 0;

	while (at < TEXT) {
		u32 word = kdyno_below(1 + kdyno_below(WORDS));
		u32 length = min(lengths[word], TEXT - at);

		memcpy(kdyno_from + at, letters + starts[word], length);
		at += length;
		if (at < TEXT)
			kdyno_from[at++] = kdyno_below(8) ? ' ' : '\n';
	}
}

static int run_crc32(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += crc32_le(i, kdyno_from + places[i], path->size);
	return 0;
}

static int run_siphash(const struct kdyno_path *path)
{
	siphash_key_t key = { { words[0], words[1] } };
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += siphash(kdyno_from + places[i], path->size, &key);
	return 0;
}

static int run_xxh64(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += xxh64(kdyno_from + places[i], path->size, i);
	return 0;
}

static int run_sha256(const struct kdyno_path *path)
{
	u8 digest[SHA256_DIGEST_SIZE];
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		sha256(kdyno_from + places[i], path->size, digest);
		kdyno_sink += digest[0];
	}
	return 0;
}

static int run_chacha(const struct kdyno_path *path)
{
	u32 key[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	u8 iv[16] = {};
	unsigned int i;
#if KDYNO_LINUX >= 6016
	struct chacha_state state;

	chacha_init(&state, key, iv);
	for (i = 0; i < path->count; i++)
		chacha20_crypt(&state, kdyno_to, kdyno_from + places[i],
			       path->size);
#else
	u32 state[16];

	chacha_init(state, key, iv);
	for (i = 0; i < path->count; i++)
		chacha20_crypt(state, kdyno_to, kdyno_from + places[i],
			       path->size);
#endif
	return 0;
}

static int run_checksum(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += (__force u32)csum_partial(kdyno_from + places[i],
							path->size, 0);
	return 0;
}

static int run_memcpy(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		memcpy(kdyno_to, kdyno_from + places[i], path->size);
	return 0;
}

static int prepare_numbers(const struct kdyno_path *path)
{
	unsigned int i, j;

	for (i = 0; i < ARRAYS; i++) {
		INIT_LIST_HEAD(&lists[i]);
		for (j = 0; j < NUMBERS; j++) {
			numbers[i][j] = kdyno_random();
			items[i][j].key = kdyno_random();
			list_add_tail(&items[i][j].list, &lists[i]);
		}
	}
	return 0;
}

static int compare_numbers(const void *left, const void *right)
{
	u32 a = *(const u32 *)left, b = *(const u32 *)right;

	return a < b ? -1 : a > b;
}

static int compare_items(void *unused, const struct list_head *left,
			 const struct list_head *right)
{
	u32 a = list_entry(left, struct item, list)->key;
	u32 b = list_entry(right, struct item, list)->key;

	return a < b ? -1 : a > b;
}

static int run_sort(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		sort(numbers[i], NUMBERS, sizeof(u32), compare_numbers, NULL);
	return 0;
}

static int run_list_sort(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		list_sort(NULL, &lists[i], compare_items);
	return 0;
}

static int prepare_search(const struct kdyno_path *path)
{
	unsigned int i;

	prepare_numbers(path);
	sort(numbers[0], NUMBERS, sizeof(u32), compare_numbers, NULL);
	for (i = 0; i < path->count; i++)
		places[i] = numbers[0][kdyno_below(NUMBERS)];
	return 0;
}

static int run_search(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		if (!bsearch(&places[i], numbers[0], NUMBERS, sizeof(u32),
			     compare_numbers))
			return -ENOENT;
	}
	return 0;
}

/* Numbers of one to twenty digits. */
static int prepare_words(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		words[i] = kdyno_random() >> kdyno_below(63);
		scnprintf(digits[i], sizeof(digits[i]), "%llu", words[i]);
	}
	return 0;
}

static int run_snprintf(const struct kdyno_path *path)
{
	char text[128];
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += snprintf(text, sizeof(text), "%s:%d %#lx %pI4 %llu\n",
				       digits[i], (int)words[i],
				       (unsigned long)words[i], &words[i],
				       words[i]);
	return 0;
}

static int run_kstrtoull(const struct kdyno_path *path)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < path->count && !error; i++) {
		unsigned long long value;

		error = kstrtoull(digits[i], 10, &value);
		kdyno_sink += value;
	}
	return error;
}

static int prepare_bits(const struct kdyno_path *path)
{
	unsigned int i;

	bitmap_zero(bits, BITS);
	for (i = 0; i < BITS / 16; i++)
		__set_bit(kdyno_below(BITS), bits);
	return 0;
}

static int run_bits(const struct kdyno_path *path)
{
	unsigned int i;
	unsigned long bit;

	for (i = 0; i < path->count; i++) {
		for_each_set_bit(bit, bits, BITS)
			kdyno_sink += bit;
	}
	return 0;
}

static int setup_lz4(const struct kdyno_path *path)
{
	make_vocabulary();
	workspace = vmalloc(LZ4_MEM_COMPRESS);
	return workspace ? 0 : -ENOMEM;
}

static int run_lz4_pack(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		packed = LZ4_compress_default(kdyno_from, kdyno_to, TEXT,
					      KDYNO_BUFFER, workspace);
		if (!packed)
			return -EIO;
	}
	return 0;
}

static int prepare_text(const struct kdyno_path *path)
{
	make_text();
	return 0;
}

static int prepare_lz4_packed(const struct kdyno_path *path)
{
	make_text();
	packed = LZ4_compress_default(kdyno_from, kdyno_to, TEXT, KDYNO_BUFFER,
				      workspace);
	return packed ? 0 : -EIO;
}

static int run_lz4_unpack(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		if (LZ4_decompress_safe(kdyno_to, kdyno_from, packed, TEXT) != TEXT)
			return -EIO;
	}
	return 0;
}

static int setup_zstd(const struct kdyno_path *path)
{
	size_t pack_size, unpack_size = zstd_dctx_workspace_bound();

	make_vocabulary();
	zstd = zstd_get_params(LEVEL, TEXT);
	pack_size = ALIGN(zstd_cctx_workspace_bound(&zstd.cParams), 64);
	workspace = vmalloc(pack_size + unpack_size);
	if (!workspace)
		return -ENOMEM;
	zstd_packer = zstd_init_cctx(workspace, pack_size);
	zstd_unpacker = zstd_init_dctx(workspace + pack_size, unpack_size);
	return zstd_packer && zstd_unpacker ? 0 : -ENOMEM;
}

static int run_zstd_pack(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		packed = zstd_compress_cctx(zstd_packer, kdyno_to, KDYNO_BUFFER,
					    kdyno_from, TEXT, &zstd);
		if (zstd_is_error(packed))
			return -EIO;
	}
	return 0;
}

static int prepare_zstd_packed(const struct kdyno_path *path)
{
	make_text();
	packed = zstd_compress_cctx(zstd_packer, kdyno_to, KDYNO_BUFFER,
				    kdyno_from, TEXT, &zstd);
	return zstd_is_error(packed) ? -EIO : 0;
}

static int run_zstd_unpack(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++) {
		if (zstd_decompress_dctx(zstd_unpacker, kdyno_from, TEXT,
					 kdyno_to, packed) != TEXT)
			return -EIO;
	}
	return 0;
}

static void teardown_workspace(const struct kdyno_path *path)
{
	vfree(workspace);
	workspace = NULL;
}

#define ROW(_name, _operation, _size, _count, _prepare, _run)		\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.size = _size,						\
		.count = _count,					\
		.library = true,					\
		.prepare = _prepare,					\
		.run = _run,						\
	}

#define PACKER(_name, _operation, _count, _setup, _prepare, _run)	\
	{								\
		.name = _name,						\
		.operation = _operation,				\
		.size = TEXT,						\
		.count = _count,					\
		.library = true,					\
		.setup = _setup,					\
		.prepare = _prepare,					\
		.run = _run,						\
		.teardown = teardown_workspace,				\
	}

static const struct kdyno_path rows[] = {
	ROW("snprintf", "line of five values formatted",
	    0, 1000, prepare_words, run_snprintf),
	ROW("kstrtoull", "number of 1 to 20 digits read",
	    0, 8192, prepare_words, run_kstrtoull),
	ROW("crc32_1500", "CRC of 1,500 B",
	    1500, 200, prepare_data, run_crc32),
	ROW("siphash_64", "hash of 64 B",
	    64, 6000, prepare_data, run_siphash),
	ROW("xxh64_1k", "hash of 1 kB",
	    1024, 2000, prepare_data, run_xxh64),
	ROW("sha256_1k", "digest of 1 kB",
	    1024, 60, prepare_data, run_sha256),
	ROW("chacha20_1k", "1 kB encrypted",
	    1024, 100, prepare_data, run_chacha),
	ROW("csum_1460", "checksum of 1,460 B",
	    1460, 6000, prepare_data, run_checksum),
	ROW("memcpy_1500", "1,500 B copied",
	    1500, 4096, prepare_data, run_memcpy),
	ROW("sort_1000", "1,000 random numbers sorted",
	    0, ARRAYS, prepare_numbers, run_sort),
	ROW("list_sort_1000", "list of 1,000 random keys sorted",
	    0, ARRAYS, prepare_numbers, run_list_sort),
	ROW("bsearch_1000", "random one of 1,000 numbers found",
	    0, 4096, prepare_search, run_search),
	ROW("bitmap_4096", "set bits of 4,096 found, one of 16 set",
	    0, 400, prepare_bits, run_bits),
	PACKER("lz4_pack_64k", "64 kB packed by LZ4",
	       3, setup_lz4, prepare_text, run_lz4_pack),
	PACKER("lz4_unpack_64k", "64 kB unpacked by LZ4",
	       10, setup_lz4, prepare_lz4_packed, run_lz4_unpack),
	PACKER("zstd_pack_64k", "64 kB packed by zstd, level 3",
	       1, setup_zstd, prepare_text, run_zstd_pack),
	PACKER("zstd_unpack_64k", "64 kB unpacked by zstd, level 3",
	       4, setup_zstd, prepare_zstd_packed, run_zstd_unpack),
	{ }
};

const struct kdyno_group kdyno_library = { "library", rows };
