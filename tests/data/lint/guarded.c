/* Vector registers where they may be used. */
void kernel_fpu_begin_mask(unsigned int mask);
void kernel_fpu_end(void);

void guarded_vector(void *to, const void *from)
{
	kernel_fpu_begin_mask(2);
	asm volatile("movups (%1), %%xmm0\n\tmovups %%xmm0, (%0)" : : "r" (to), "r" (from) : "memory");
	kernel_fpu_end();
}
