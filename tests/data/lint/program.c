/* A kernel that is a program: its own use of vector registers is a fault, that of the C library is not. */
#include <stdio.h>
#include <string.h>

__attribute__((noinline, cold)) static double planted_cold(double value)
{
	return value * 1.5;
}

__attribute__((noinline)) double planted_simd(const char *text)
{
	return planted_cold((double)strlen(text));
}

int main(int argc, char **argv)
{
	return printf("%d\n", planted_simd(argv[0]) > argc) < 0;
}
