// SPDX-License-Identifier: GPL-2.0
/* Packets through the BPF interpreter, and data through the crypto API. */
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <crypto/skcipher.h>

#include "kdyno_paths.h"

#define PACKETS		64
#define FILTERED	4096
#define BYTES		128
#define KEY_BYTES	16
#define IV_BYTES	16

static struct bpf_prog *program;
static struct sk_buff *packets[PACKETS];
static u32 order[FILTERED];
static struct crypto_sync_skcipher *cipher;

/* As tcpdump translates "ip and udp and not fragments and port 53". */
static struct sock_filter instructions[] = {
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 10),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 8),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 6, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 53, 2, 0),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 53, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0xffff),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static int setup_program(const struct kdyno_path *path)
{
	struct sock_fprog_kern source = {
		.len = ARRAY_SIZE(instructions),
		.filter = instructions,
	};
	unsigned int i;
	int error = bpf_prog_create(&program, &source);

	if (error) {
		program = NULL;
		return error;
	}
	for (i = 0; i < PACKETS; i++) {
		packets[i] = alloc_skb(BYTES, GFP_KERNEL);
		if (!packets[i])
			return -ENOMEM;
		skb_put(packets[i], BYTES);
	}
	return 0;
}

/* Three quarters are UDP, a quarter of which goes to port 53. */
static int prepare_packets(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < PACKETS; i++) {
		u8 *bytes = packets[i]->data;

		kdyno_fill(bytes, BYTES);
		bytes[12] = ETH_P_IP >> 8;
		bytes[13] = ETH_P_IP & 0xff;
		bytes[14] = 0x45;
		bytes[20] = 0;
		bytes[21] = 0;
		bytes[23] = i % 4 ? IPPROTO_UDP : IPPROTO_TCP;
		if (i / 4 % 4 == 0) {
			bytes[36] = 0;
			bytes[37] = 53;
		}
	}
	for (i = 0; i < path->count; i++)
		order[i] = kdyno_below(PACKETS);
	return 0;
}

static int run_program(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < path->count; i++)
		kdyno_sink += bpf_prog_run_pin_on_cpu(program,
						      packets[order[i]]);
	return 0;
}

static void teardown_program(const struct kdyno_path *path)
{
	unsigned int i;

	for (i = 0; i < PACKETS; i++) {
		kfree_skb(packets[i]);
		packets[i] = NULL;
	}
	if (program)
		bpf_prog_destroy(program);
	program = NULL;
}

static int setup_cipher(const struct kdyno_path *path)
{
	u8 key[KEY_BYTES];

	cipher = crypto_alloc_sync_skcipher("ctr(aes)", 0, 0);
	if (IS_ERR(cipher))
		return PTR_ERR(cipher);
	kdyno_fill(key, sizeof(key));
	return crypto_sync_skcipher_setkey(cipher, key, sizeof(key));
}

static int prepare_data(const struct kdyno_path *path)
{
	kdyno_fill(kdyno_from, path->size);
	return 0;
}

static int run_cipher(const struct kdyno_path *path)
{
	SYNC_SKCIPHER_REQUEST_ON_STACK(request, cipher);
	struct scatterlist from, to;
	u8 iv[IV_BYTES] = {};
	unsigned int i;
	int error = 0;

	sg_init_one(&from, kdyno_from, path->size);
	sg_init_one(&to, kdyno_to, path->size);
	skcipher_request_set_sync_tfm(request, cipher);
	skcipher_request_set_callback(request, 0, NULL, NULL);
	for (i = 0; i < path->count && !error; i++) {
		skcipher_request_set_crypt(request, &from, &to, path->size, iv);
		error = crypto_skcipher_encrypt(request);
	}
	skcipher_request_zero(request);
	return error;
}

static void teardown_cipher(const struct kdyno_path *path)
{
	if (!IS_ERR_OR_NULL(cipher))
		crypto_free_sync_skcipher(cipher);
	cipher = NULL;
}

static const struct kdyno_path rows[] = {
	{
		.name = "bpf_filter",
		.operation = "packet through a filter of 13 instructions",
		.count = FILTERED,
		.setup = setup_program,
		.prepare = prepare_packets,
		.run = run_program,
		.teardown = teardown_program,
	}, {
		.name = "aes_ctr_1k",
		.operation = "1 kB encrypted by the crypto API",
		.size = 1024,
		.count = 60,
		.setup = setup_cipher,
		.prepare = prepare_data,
		.run = run_cipher,
		.teardown = teardown_cipher,
	},
	{ }
};

const struct kdyno_group kdyno_filter = { "filter", rows };
