// SPDX-License-Identifier: GPL-2.0-or-later
/* The smallest module that DKMS can build: the tests look at what it was built with, and load it. */
#include <linux/module.h>

static int __init hello_init(void)
{
	pr_info("kdyno-hello: loaded\n");
	return 0;
}
module_init(hello_init);

static void __exit hello_exit(void)
{
	pr_info("kdyno-hello: removed\n");
}
module_exit(hello_exit);

MODULE_DESCRIPTION("A module of a test");
MODULE_LICENSE("GPL");
