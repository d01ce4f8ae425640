/* One of each other lint, in the idiom of the kernel. */
void kernel_fpu_begin_mask(unsigned int mask);
void kernel_fpu_end(void);

/* Emitted, because its address is taken. */
static inline __attribute__((__always_inline__)) int planted_inline(int *v) { return *v; }
int (*planted_pointer)(int *v) = planted_inline;

void planted_vector(void *to, const void *from)
{
	asm volatile("movups (%1), %%xmm0\n\tmovups %%xmm0, (%0)" : : "r" (to), "r" (from) : "memory");
}

unsigned __int128 planted_divide(unsigned __int128 a, unsigned __int128 b) { return a / b; }

unsigned long planted_remainder(unsigned long a, unsigned long b) { return a % b; }

int planted_data;

#define ALTERNATIVE(where, new)                                                               \
	asm volatile("661:\n\tnopl (%%rax)\n662:\n"                                           \
		     ".pushsection .altinstructions,\"a\"\n"                                  \
		     "\t.long " where " - .\n\t.long 663f - .\n\t.4byte 1\n"                  \
		     "\t.byte 662b-661b\n\t.byte 664f-663f\n.popsection\n"                    \
		     ".pushsection .altinstr_replacement,\"ax\"\n663:\n\t" new "\n664:\n"     \
		     ".popsection" : : : "memory")

void sound_alternative(void) { ALTERNATIVE("661b", "lfence"); }
void planted_data_patched(void) { ALTERNATIVE("planted_data", "lfence"); }
void planted_half_patched(void) { ALTERNATIVE("661b+1", "xchg %%ax,%%ax"); }
void planted_loop(void) { ALTERNATIVE("661b", "loop sound_alternative"); }
