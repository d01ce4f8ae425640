// SPDX-License-Identifier: GPL-2.0-or-later
/* The summing function of the tree's crc32c by the processor's instruction, which is static there. */
#include KDYNO_SOURCE

u32 crc32c_instruction(u32 sum, const u8 *from, size_t size);
u32 crc32c_instruction(u32 sum, const u8 *from, size_t size)
{
	return crc32c_intel_le_hw(sum, from, size);
}
