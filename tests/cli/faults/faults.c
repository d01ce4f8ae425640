/* Lets the n-th call of one kind fail; of files only regular ones, and none of the standard ones. server.py arms it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE, SYNC, NAME, REMOVE, MEMORY, KINDS };

static long calls[KINDS], failing[KINDS];
static int error_of[KINDS], is_for_good;

void faults_arm(int kind, long n, int error, int for_good)
{
	for (int i = 0; i < KINDS; i++)
		calls[i] = failing[i] = 0;
	failing[kind] = n;
	error_of[kind] = error;
	is_for_good = for_good;
}

long faults_calls(int kind)
{
	return calls[kind];
}

static int fails(int kind)
{
	long call = __atomic_add_fetch(&calls[kind], 1, __ATOMIC_SEQ_CST);

	if (!failing[kind] || call < failing[kind] || (call > failing[kind] && !is_for_good))
		return 0;
	errno = error_of[kind];
	return 1;
}

static int is_file(int fd)
{
	struct stat status;
	return fd > 2 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *from, size_t size)
{
	REAL(write);
	return is_file(fd) && fails(WRITE) ? -1 : real(fd, from, size);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
	REAL(pwrite);
	return fails(WRITE) ? -1 : real(fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
	REAL(pwrite64);
	return fails(WRITE) ? -1 : real(fd, from, size, at);
}

int fsync(int fd)
{
	REAL(fsync);
	return fails(SYNC) ? -1 : real(fd);
}

int fdatasync(int fd)
{
	REAL(fdatasync);
	return fails(SYNC) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
	REAL(rename);
	return fails(NAME) ? -1 : real(from, to);
}

int link(const char *from, const char *to)
{
	REAL(link);
	return fails(NAME) ? -1 : real(from, to);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	REAL(linkat);
	return fails(NAME) ? -1 : real(from_fd, from, to_fd, to, flags);
}

int unlinkat(int fd, const char *path, int flags)
{
	REAL(unlinkat);
	return fails(REMOVE) ? -1 : real(fd, path, flags);
}

int unlink(const char *path)
{
	REAL(unlink);
	return fails(REMOVE) ? -1 : real(path);
}

/* dlsym() itself allocates, so these three are called by glibc's other names for them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
	return fails(MEMORY) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	return fails(MEMORY) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size)
{
	return fails(MEMORY) ? NULL : __libc_realloc(memory, size);
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t at)
{
	if (fails(MEMORY))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, where, size, protection, flags, fd, at);
}
