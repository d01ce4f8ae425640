/* As arch/um/os-Linux/signal.c of Linux 6.1 to 6.12 has it, without what signals do. */
int signals_enabled, signals_pending, served;
#define barrier() asm volatile("" : : : "memory")

void block_signals(void)
{
	signals_enabled = 0;
}

void unblock_signals(void)
{
	int save_pending;

	if (signals_enabled == 1)
		return;

	signals_enabled = 1;

	/*
	 * We loop because the handler returns with interrupts off.
	 */
	while (1) {
		barrier();
		save_pending = signals_pending;
		if (save_pending == 0)
			return;
		signals_pending = 0;
		served += save_pending;
	}
}

int main(void)
{
	unblock_signals();
	signals_pending = 5;
	block_signals();
	unblock_signals();
	return served + 10 * signals_enabled;
}
