/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mux/program/sandbox.h"

enum { RIGHT = 0, WRONG = 3, NO_FILTER, NO_I386 };

#define NO (-1L)
/* One for names, of the C library; nobody has loaded it. */
#define LIBRARY "libnss_compat.so.2"

/* With arguments that the kernel turns down, if it comes to look at them. */
struct call {
	const char *name;
	long nr;
	long arg[3];
};

#define BAD(name) { #name, SYS_##name, { NO, NO, NO } }
/* One that headers may be too old for. */
#define BAD_NEW(name, nr) { #name, nr, { NO, NO, NO } }

static const struct call forbidden[] = {
	BAD(execve), BAD(execveat), BAD(memfd_create),
	BAD_NEW(memfd_secret, 447),
	BAD(process_vm_readv), BAD(process_vm_writev), BAD(kcmp),
	BAD_NEW(pidfd_getfd, 438),
	BAD_NEW(process_madvise, 440),
	BAD(unshare), BAD(setns), BAD(mount), BAD(umount2), BAD(pivot_root),
	BAD(chroot),
	BAD_NEW(open_tree, 428),
	BAD_NEW(move_mount, 429),
	BAD_NEW(fsopen, 430),
	BAD_NEW(fsconfig, 431),
	BAD_NEW(fsmount, 432),
	BAD_NEW(fspick, 433),
	BAD_NEW(mount_setattr, 442),
	BAD_NEW(open_tree_attr, 467),
	BAD(swapon), BAD(swapoff), BAD(quotactl),
	BAD_NEW(quotactl_fd, 443),
	BAD(mknodat), BAD(open_by_handle_at), BAD(fanotify_init),
	BAD(init_module), BAD(finit_module), BAD(delete_module), BAD(kexec_load),
	BAD(bpf), BAD(perf_event_open), BAD(userfaultfd),
	BAD_NEW(io_uring_setup, 425),
	BAD(reboot), BAD(syslog), BAD(acct), BAD(sethostname),
	BAD(setdomainname), BAD(settimeofday), BAD(clock_settime),
	BAD(adjtimex), BAD(clock_adjtime),
	BAD(add_key), BAD(request_key), BAD(keyctl), BAD(shmat),
	BAD(personality),
#ifdef __x86_64__
	BAD(kexec_file_load), BAD(mknod), BAD(iopl), BAD(ioperm),
	BAD(modify_ldt),
	{ "getpid of x32", 0x40000000 + SYS_getpid, { 0, 0, 0 } },
#endif
	/* Each would be EINVAL: a thread shares how signals are dealt with. */
	{ "clone: mounts", SYS_clone, { CLONE_THREAD | CLONE_NEWNS } },
	{ "clone: cgroup", SYS_clone, { CLONE_THREAD | CLONE_NEWCGROUP } },
	{ "clone: uts", SYS_clone, { CLONE_THREAD | CLONE_NEWUTS } },
	{ "clone: ipc", SYS_clone, { CLONE_THREAD | CLONE_NEWIPC } },
	{ "clone: user", SYS_clone, { CLONE_THREAD | CLONE_NEWUSER } },
	{ "clone: pid", SYS_clone, { CLONE_THREAD | CLONE_NEWPID } },
	{ "clone: net", SYS_clone, { CLONE_THREAD | CLONE_NEWNET } },
	{ "packet socket", SYS_socket, { AF_PACKET, NO } },
	{ "AF_ALG socket", SYS_socket, { AF_ALG, NO } },
	{ "vsock socket", SYS_socket, { AF_VSOCK, NO } },
	{ "bluetooth socket", SYS_socket, { AF_BLUETOOTH, NO } },
	{ "raw socket", SYS_socket, { AF_INET, SOCK_RAW, NO } },
	{ "raw socket of IPv6", SYS_socket,
	  { AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NO } },
	{ "old packet socket", SYS_socket, { AF_INET, SOCK_PACKET, 1 } },
	{ "netlink 2", SYS_socket, { AF_NETLINK, NO, NETLINK_USERSOCK } },
	{ "netlink 10", SYS_socket, { AF_NETLINK, NO, AF_INET6 } },
	{ "netfilter", SYS_socket, { AF_NETLINK, NO, NETLINK_NETFILTER } },
	{ "TIPC pair", SYS_socketpair, { AF_TIPC, NO } },
	{ "pair of IPv4", SYS_socketpair, { AF_INET, NO } },
	{ "mmap to write and run", SYS_mmap,
	  { 0, 0, PROT_READ | PROT_WRITE | PROT_EXEC } },
	{ "mprotect to run", SYS_mprotect, { 1, 0, PROT_READ | PROT_EXEC } },
	{ "pkey_mprotect to run", SYS_pkey_mprotect, { 1, 0, PROT_EXEC } },
	{ "TIOCSTI", SYS_ioctl, { NO, TIOCSTI } },
	{ "TIOCLINUX", SYS_ioctl, { NO, TIOCLINUX } },
};

/* These get as far as their arguments. */
static const struct call allowed[] = {
	{ "clone: thread", SYS_clone, { CLONE_THREAD } },
	{ "UNIX socket", SYS_socket, { AF_UNIX, NO } },
	{ "route socket", SYS_socket, { AF_NETLINK, NO, NETLINK_ROUTE } },
	{ "MPTCP socket", SYS_socket, { AF_INET, SOCK_STREAM, NO } },
	{ "UDP socket of IPv6", SYS_socket, { AF_INET6, SOCK_DGRAM, NO } },
	{ "SCTP socket", SYS_socket, { AF_INET, SOCK_SEQPACKET, NO } },
	{ "mmap to run", SYS_mmap, { 0, 0, PROT_READ | PROT_EXEC } },
	{ "mmap to write", SYS_mmap, { 0, 0, PROT_READ | PROT_WRITE } },
	{ "mprotect", SYS_mprotect, { 1, 0, PROT_READ | PROT_WRITE } },
	{ "ioctl", SYS_ioctl, { NO, FIONREAD } },
	{ "UNIX pair", SYS_socketpair, { AF_UNIX, NO } },
	BAD(openat), BAD(unlinkat), BAD(tgkill), BAD(prctl),
	BAD(setsockopt), BAD(sendmmsg), BAD(prlimit64), BAD(futex),
};

enum {
	FORBIDDEN = sizeof(forbidden) / sizeof(*forbidden),
	ALLOWED = sizeof(allowed) / sizeof(*allowed),
};

static int try(const struct call *c)
{
	const long *arg = c->arg;

	errno = 0;
	syscall(c->nr, arg[0], arg[1], arg[2], NO, NO, NO);
	return errno;
}

/* What one does not get back out of is done in a process of its own. */
static int in_child(int (*run)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(run(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

struct tried {
	int before[FORBIDDEN], after[FORBIDDEN];
	int still_before[ALLOWED], still[ALLOWED];
};

static int try_all(void *arg)
{
	struct tried *t = arg;
	unsigned int i;

	for (i = 0; i < FORBIDDEN; i++)
		t->before[i] = try(&forbidden[i]);
	for (i = 0; i < ALLOWED; i++)
		t->still_before[i] = try(&allowed[i]);
	if (sandbox_enter())
		return NO_FILTER;
	for (i = 0; i < FORBIDDEN; i++)
		t->after[i] = try(&forbidden[i]);
	for (i = 0; i < ALLOWED; i++)
		t->still[i] = try(&allowed[i]);
	return RIGHT;
}

/*
 * Some calls are for root alone anyway, and then nothing is seen of the filter; but
 * running programs, or a socket of netlink, is for everybody.
 */
static void what_is_forbidden_and_what_is_not(void **state)
{
	struct tried *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, shown = 0;

	(void)state;
	assert_true(t != MAP_FAILED);
	assert_int_equal(in_child(try_all, t), RIGHT);
	for (i = 0; i < FORBIDDEN; i++) {
		if (t->after[i] != EPERM)
			fail_msg("%s: %s", forbidden[i].name,
				 strerror(t->after[i]));
		shown += t->before[i] != EPERM;
		if (!geteuid() && t->before[i] == EPERM)
			print_message("%s is forbidden here anyway\n",
				      forbidden[i].name);
	}
	for (i = 0; i < ALLOWED; i++) {
		if (t->still[i] != t->still_before[i] || t->still[i] == EPERM)
			fail_msg("%s: %s, and before %s", allowed[i].name,
				 strerror(t->still[i]),
				 strerror(t->still_before[i]));
	}
	assert_int_not_equal(t->before[0], EPERM);
	print_message("%u of %u calls were not forbidden before\n", shown,
		      FORBIDDEN);
	munmap(t, sizeof(*t));
}

static void *in_thread(void *arg)
{
	int *seen = arg;

	*seen = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER &&
		prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ?
		try(&forbidden[0]) : 0;
	return NULL;
}

/* A C library asks for clone3() first, and takes clone() where there is none. */
static int start_thread(void *arg)
{
	const struct call clone3 = BAD_NEW(clone3, 435);
	pthread_t thread;
	int seen = 0;

	(void)arg;
	if (sandbox_enter() || try(&clone3) != ENOSYS)
		return WRONG;
	if (pthread_create(&thread, NULL, in_thread, &seen) ||
	    pthread_join(thread, NULL))
		return WRONG;
	return seen == EPERM ? RIGHT : WRONG;
}

static void threads_start_and_are_in_it(void **state)
{
	(void)state;
	assert_int_equal(in_child(start_thread, NULL), RIGHT);
}

#ifdef __x86_64__

enum { GETPID_OF_I386 = 20 };

static long getpid_of_i386(void)
{
	long answer;

	__asm__ volatile("int $0x80" : "=a" (answer) : "a" (GETPID_OF_I386) :
			 "r8", "r9", "r10", "r11", "memory");
	return answer;
}

static void not_there(int sig)
{
	(void)sig;
	_exit(NO_I386);
}

static int call_as_i386(void *arg)
{
	(void)arg;
	signal(SIGSEGV, not_there);
	if (getpid_of_i386() != getpid() || sandbox_enter())
		return WRONG;
	return getpid_of_i386() == -EPERM && getpid() > 0 ? RIGHT : WRONG;
}

/* Its calls have other numbers: 11 is execve() there. */
static void calls_of_i386_are_forbidden(void **state)
{
	int seen = in_child(call_as_i386, NULL);

	(void)state;
	if (seen == NO_I386) {
		print_message("this kernel has no calls of i386\n");
		skip();
	}
	assert_int_equal(seen, RIGHT);
}

#endif

/* To return at once. */
#ifdef __x86_64__
static const uint8_t code[] = { 0xc3 };
#else
static const uint8_t code[] = { 0xc0, 0x03, 0x5f, 0xd6 };
#endif

static void not_to_be_run(int sig)
{
	(void)sig;
	_exit(RIGHT);
}

static int run_what_was_written(void *arg)
{
	void (*run)(void);
	char *memory;

	(void)arg;
	if (sandbox_enter())
		return NO_FILTER;
	personality(READ_IMPLIES_EXEC);
	memory = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return RIGHT;
	memcpy(memory, code, sizeof(code));
	__builtin___clear_cache(memory, memory + sizeof(code));
	*(void **)&run = memory;
	signal(SIGSEGV, not_to_be_run);
	run();
	return WRONG;
}

/* Nor after the kernel was asked to take all that may be read for what may be run. */
static void what_was_written_is_not_run(void **state)
{
	(void)state;
	assert_int_equal(in_child(run_what_was_written, NULL), RIGHT);
}

/* By what is in the C library, and by what /etc/nsswitch.conf may have it load. */
static int look_up(void *arg)
{
	struct addrinfo *found;

	(void)arg;
	if (sandbox_enter() || getaddrinfo("localhost", NULL, NULL, &found))
		return WRONG;
	freeaddrinfo(found);
	if (dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD))
		return WRONG;
	return dlopen(LIBRARY, RTLD_NOW) ? RIGHT : WRONG;
}

static void names_are_looked_up(void **state)
{
	(void)state;
	assert_int_equal(in_child(look_up, NULL), RIGHT);
}

/* As a container may have it: who asks for a filter is told that there are none. */
static int without_filters(void *arg)
{
	struct sock_filter no_filters[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 6, no_filters };

	(void)arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return WRONG;
	return sandbox_enter() == -EINVAL && try(&forbidden[0]) != EPERM ?
	       RIGHT : WRONG;
}

static void a_system_without_filters_says_so(void **state)
{
	(void)state;
	assert_int_equal(in_child(without_filters, NULL), RIGHT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_forbidden_and_what_is_not),
		cmocka_unit_test(threads_start_and_are_in_it),
#ifdef __x86_64__
		cmocka_unit_test(calls_of_i386_are_forbidden),
#endif
		cmocka_unit_test(what_was_written_is_not_run),
		cmocka_unit_test(names_are_looked_up),
		cmocka_unit_test(a_system_without_filters_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
