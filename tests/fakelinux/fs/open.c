/* opens files, or so it says */

static int allowed(int flags)
{
	return (flags & 3) != 3;
}

int sys_open(int flags)
{
	if (!allowed(flags))
		return -22;
#ifdef CONFIG_FAKE_BREAK
	return undeclared_file;
#endif
	return flags + 1;
}

/*
 * A few lines so that
 * hunks further down
 * have some room.
 */

const char *open_file(void)
{
	return __FILE__;
}

int sys_close(int fd)
{
	return fd < 0 ? -9 : 0;
}
