int sys_socket(void)
{
	return 3;
}
