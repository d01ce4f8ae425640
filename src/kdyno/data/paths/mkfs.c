// SPDX-License-Identifier: GPL-2.0
/*
 * An ext4 file system with a journal on the RAM disk. No user process is ever
 * started, so there is no mke2fs.
 */
#include <linux/jbd2.h>
#include <linux/init.h>
#include <fs/ext4/ext4.h>
#include <fs/ext4/ext4_extents.h>

#include "kdyno_paths.h"

#define BLOCK_SIZE_LOG	12
#define BLOCK_BYTES	4096
#define PER_GROUP	(BLOCK_BYTES * 8)
#define INODES		1024
#define INODE_BYTES	256
#define RESERVED_INODES	10
#define JOURNAL_BLOCKS	1024

/* What lies in which block. */
enum {
	AT_SUPERBLOCK,
	AT_DESCRIPTORS,
	AT_BLOCK_BITMAP,
	AT_INODE_BITMAP,
	AT_INODE_TABLE,
	AT_ROOT = AT_INODE_TABLE + INODES * INODE_BYTES / BLOCK_BYTES,
	AT_JOURNAL,
	AT_FREE = AT_JOURNAL + JOURNAL_BLOCKS,
};

static int __init put(struct file *disk, unsigned int block)
{
	int error;

	error = kdyno_write(disk, kdyno_to, BLOCK_BYTES,
			    (loff_t)block * BLOCK_BYTES);
	memset(kdyno_to, 0, BLOCK_BYTES);
	return error;
}

static int __init put_superblock(struct file *disk)
{
	struct ext4_super_block *super = (void *)kdyno_to + 1024;

	super->s_inodes_count = cpu_to_le32(INODES);
	super->s_blocks_count_lo = cpu_to_le32(KDYNO_BLOCKS);
	super->s_free_blocks_count_lo = cpu_to_le32(KDYNO_BLOCKS - AT_FREE);
	super->s_free_inodes_count = cpu_to_le32(INODES - RESERVED_INODES);
	super->s_log_block_size = cpu_to_le32(BLOCK_SIZE_LOG - 10);
	super->s_log_cluster_size = cpu_to_le32(BLOCK_SIZE_LOG - 10);
	super->s_blocks_per_group = cpu_to_le32(PER_GROUP);
	super->s_clusters_per_group = cpu_to_le32(PER_GROUP);
	super->s_inodes_per_group = cpu_to_le32(INODES);
	super->s_max_mnt_count = cpu_to_le16(0xffff);
	super->s_magic = cpu_to_le16(EXT4_SUPER_MAGIC);
	super->s_state = cpu_to_le16(EXT4_VALID_FS);
	super->s_errors = cpu_to_le16(EXT4_ERRORS_CONTINUE);
	super->s_rev_level = cpu_to_le32(EXT4_DYNAMIC_REV);
	super->s_first_ino = cpu_to_le32(RESERVED_INODES + 1);
	super->s_inode_size = cpu_to_le16(INODE_BYTES);
	super->s_feature_compat =
		cpu_to_le32(EXT4_FEATURE_COMPAT_HAS_JOURNAL |
			    EXT4_FEATURE_COMPAT_DIR_INDEX);
	super->s_feature_incompat =
		cpu_to_le32(EXT4_FEATURE_INCOMPAT_FILETYPE |
			    EXT4_FEATURE_INCOMPAT_EXTENTS);
	super->s_feature_ro_compat =
		cpu_to_le32(EXT4_FEATURE_RO_COMPAT_SPARSE_SUPER |
			    EXT4_FEATURE_RO_COMPAT_LARGE_FILE |
			    EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE);
	super->s_journal_inum = cpu_to_le32(EXT4_JOURNAL_INO);
	super->s_def_hash_version = DX_HASH_HALF_MD4;
	super->s_flags = cpu_to_le32(EXT2_FLAGS_SIGNED_HASH);
	super->s_min_extra_isize = cpu_to_le16(32);
	super->s_want_extra_isize = cpu_to_le16(32);
	return put(disk, AT_SUPERBLOCK);
}

static int __init put_descriptors(struct file *disk)
{
	struct ext4_group_desc *group = (void *)kdyno_to;

	group->bg_block_bitmap_lo = cpu_to_le32(AT_BLOCK_BITMAP);
	group->bg_inode_bitmap_lo = cpu_to_le32(AT_INODE_BITMAP);
	group->bg_inode_table_lo = cpu_to_le32(AT_INODE_TABLE);
	group->bg_free_blocks_count_lo = cpu_to_le16(KDYNO_BLOCKS - AT_FREE);
	group->bg_free_inodes_count_lo = cpu_to_le16(INODES - RESERVED_INODES);
	group->bg_used_dirs_count_lo = cpu_to_le16(1);
	return put(disk, AT_DESCRIPTORS);
}

/* Bits of what is used, and of what lies beyond the end. */
static int __init put_bitmap(struct file *disk, unsigned int block,
			     unsigned int used, unsigned int end)
{
	unsigned int bit;

	for (bit = 0; bit < PER_GROUP; bit++) {
		if (bit < used || bit >= end)
			kdyno_to[bit / 8] |= 1 << bit % 8;
	}
	return put(disk, block);
}

static void __init make_inode(unsigned int number, u16 mode, u16 links,
			      unsigned int block, u16 blocks)
{
	struct ext4_inode *inode;
	struct ext4_extent_header *header;
	struct ext4_extent *extent;

	inode = (void *)kdyno_to + (number - 1) * INODE_BYTES;
	header = (void *)inode->i_block;
	extent = EXT_FIRST_EXTENT(header);
	inode->i_mode = cpu_to_le16(mode);
	inode->i_size_lo = cpu_to_le32(blocks * BLOCK_BYTES);
	inode->i_links_count = cpu_to_le16(links);
	inode->i_blocks_lo = cpu_to_le32(blocks * (BLOCK_BYTES / 512));
	inode->i_flags = cpu_to_le32(EXT4_EXTENTS_FL);
	inode->i_extra_isize = cpu_to_le16(32);
	header->eh_magic = EXT4_EXT_MAGIC;
	header->eh_entries = cpu_to_le16(1);
	header->eh_max = cpu_to_le16(4);
	extent->ee_len = cpu_to_le16(blocks);
	extent->ee_start_lo = cpu_to_le32(block);
}

static int __init put_inodes(struct file *disk)
{
	make_inode(EXT4_ROOT_INO, S_IFDIR | 0755, 2, AT_ROOT, 1);
	make_inode(EXT4_JOURNAL_INO, S_IFREG | 0600, 1, AT_JOURNAL, JOURNAL_BLOCKS);
	return put(disk, AT_INODE_TABLE);
}

static int __init put_root(struct file *disk)
{
	struct ext4_dir_entry_2 *self = (void *)kdyno_to;
	struct ext4_dir_entry_2 *parent = (void *)kdyno_to + 12;

	self->inode = cpu_to_le32(EXT4_ROOT_INO);
	self->rec_len = cpu_to_le16(12);
	self->name_len = 1;
	self->file_type = EXT4_FT_DIR;
	self->name[0] = '.';
	parent->inode = cpu_to_le32(EXT4_ROOT_INO);
	parent->rec_len = cpu_to_le16(BLOCK_BYTES - 12);
	parent->name_len = 2;
	parent->file_type = EXT4_FT_DIR;
	parent->name[0] = '.';
	parent->name[1] = '.';
	return put(disk, AT_ROOT);
}

static int __init put_journal(struct file *disk)
{
	journal_superblock_t *journal = (void *)kdyno_to;

	journal->s_header.h_magic = cpu_to_be32(JBD2_MAGIC_NUMBER);
	journal->s_header.h_blocktype = cpu_to_be32(JBD2_SUPERBLOCK_V2);
	journal->s_blocksize = cpu_to_be32(BLOCK_BYTES);
	journal->s_maxlen = cpu_to_be32(JOURNAL_BLOCKS);
	journal->s_first = cpu_to_be32(1);
	journal->s_sequence = cpu_to_be32(1);
	journal->s_nr_users = cpu_to_be32(1);
	return put(disk, AT_JOURNAL);
}

int __init kdyno_mkfs(void)
{
	struct file *disk = filp_open(KDYNO_DISK, O_RDWR | O_LARGEFILE, 0);
	int error;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	memset(kdyno_to, 0, BLOCK_BYTES);
	error = put_superblock(disk);
	error = error ?: put_descriptors(disk);
	error = error ?: put_bitmap(disk, AT_BLOCK_BITMAP, AT_FREE, KDYNO_BLOCKS);
	error = error ?: put_bitmap(disk, AT_INODE_BITMAP, RESERVED_INODES, INODES);
	error = error ?: put_inodes(disk);
	error = error ?: put_root(disk);
	error = error ?: put_journal(disk);
	kdyno_close(&disk);
	return error;
}
