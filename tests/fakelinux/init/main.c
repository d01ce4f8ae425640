const char linux_banner[] = BANNER;

extern int sys_open(int flags);
extern unsigned int crc32(unsigned int seed);
#ifdef CONFIG_FAKE_UNDEFINED
extern int nowhere_to_be_found(void);
#endif

int start_kernel(void)
{
	int i, sum = 0;

	for (i = 0; i < 1000; i++)
		sum += sys_open(i) + crc32(i) + linux_banner[i % 16];
#ifdef CONFIG_FAKE_UNDEFINED
	sum += nowhere_to_be_found();
#endif
	return sum;
}

const char rust_compiler[] = RUST;
