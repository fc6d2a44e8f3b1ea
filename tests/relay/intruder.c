/* SPDX-License-Identifier: MIT */
/*
 * A stranger's code in a proxy: LD_PRELOAD puts it where connections are accepted,
 * in the loop's thread, and where names are looked up, in a resolver's. It tries what
 * such code would want, once in each thread, and says on stderr how that went. With
 * INTRUDER_NO_FILTERS it is a system whose kernel takes no filters.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread bool tried;

static void say(const char *thread, const char *what)
{
	dprintf(STDERR_FILENO, "intruder in %s: %s: %s\n", thread, what,
		strerror(errno));
}

static void try_process(const char *thread)
{
	pid_t pid;

	errno = 0;
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	say(thread, "fork");
}

static void try_all(const char *thread)
{
	void *memory;

	if (tried)
		return;
	tried = true;
	try_process(thread);
	errno = 0;
	syscall(SYS_execve, NULL, NULL, NULL);
	say(thread, "execve");
	errno = 0;
	ptrace(PTRACE_ATTACH, -1, NULL, NULL);
	say(thread, "ptrace");
	errno = 0;
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	say(thread, "mmap");
	if (memory != MAP_FAILED)
		munmap(memory, 4096);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	try_all("loop");
	return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **found)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **);

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	try_all("resolver");
	return real(name, service, hints, found);
}

int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list args;
	int i;

	va_start(args, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_SECCOMP && getenv("INTRUDER_NO_FILTERS")) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}
