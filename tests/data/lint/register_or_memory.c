/* gcc passes the memory; clang 19 always takes memory for "rm", but makes it of a copy. */
typedef struct { int counter; } atomic_t;

void planted_dec(atomic_t *atomic)
{
	asm volatile("lock; decl %0" : : "rm" (atomic->counter) : "memory");
}
