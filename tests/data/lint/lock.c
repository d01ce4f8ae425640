/* The atomic_dec_and_lock of 2004: the operand of inline assembler is a value, so the compiler makes memory for it. */
typedef struct { int counter; } atomic_t;

static inline int cmpxchg_of_a_value(atomic_t v, int old, int new)
{
	asm volatile("lock; cmpxchgl %2,%1" : "+a" (old), "+m" (v.counter) : "r" (new) : "memory");
	return old;
}

int planted_dec_and_lock(atomic_t *atomic)
{
	int counter;

	while ((counter = *(volatile int *)&atomic->counter) != 1)
		if (cmpxchg_of_a_value(*atomic, counter, counter - 1) == counter)
			return 0;
	return 1;
}

/* The same with the memory itself: sound. */
int sound_dec_and_lock(atomic_t *atomic)
{
	int counter, old;

	while ((counter = *(volatile int *)&atomic->counter) != 1) {
		old = counter;
		asm volatile("lock; cmpxchgl %2,%1" : "+a" (old), "+m" (atomic->counter) : "r" (counter - 1) : "memory");
		if (old == counter)
			return 0;
	}
	return 1;
}
