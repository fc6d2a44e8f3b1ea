/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sandbox.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * Words are read where they lie on a machine whose low halves come first, and sockets
 * are made by calls of their own: so on these machines.
 */
#if defined(__x86_64__) && !defined(__ILP32__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__) && !defined(__ILP32__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE

/*
 * Calls that headers of a C library may be too old for. They have the same numbers
 * on all machines.
 */
enum {
	CALL_IO_URING_SETUP = 425,
	CALL_OPEN_TREE = 428,
	CALL_MOVE_MOUNT,
	CALL_FSOPEN,
	CALL_FSCONFIG,
	CALL_FSMOUNT,
	CALL_FSPICK,
	CALL_CLONE3 = 435,
	CALL_PIDFD_GETFD = 438,
	CALL_PROCESS_MADVISE = 440,
	CALL_MOUNT_SETATTR = 442,
	CALL_QUOTACTL_FD,
	CALL_MEMFD_SECRET = 447,
	CALL_OPEN_TREE_ATTR = 467,
};

enum {
	OTHER_CALLS = 0x40000000,	/* x86_64: x32's, and below 0 */
	SOCKET_TYPE = 0xf,		/* the others are flags */
	NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
		     CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
};

#define LOAD(what) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define MASK(bits) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ANSWER(err) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (err))
/* What follows is for what has been loaded, if it is @value; it is @n long. */
#define IF(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define IF_NOT(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, n, 0)
#define IF_ANY(bits, n) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, n)
#define IF_NONE(bits, n) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, n, 0)
#define IF_ABOVE(value, n) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, n)
#define FORBID(call) IF(call, 1), ANSWER(EPERM)

/*
 * LeakSanitizer looks for leaks at the end from a process of its own, which stops
 * and reads this one.
 */
#ifdef __SANITIZE_ADDRESS__
#define FORBID_TRACING
#define FORBID_PROCESSES
#define PROCESSES 0
#else
#define FORBID_TRACING FORBID(SYS_ptrace),
#define FORBID_PROCESSES IF_NONE(CLONE_THREAD, 1), ANSWER(EPERM),
#define PROCESSES 2
#endif

static const struct sock_filter filter[] = {
	LOAD(arch),
	IF_NOT(MACHINE, 1), ANSWER(EPERM),
	LOAD(nr),
#ifdef __x86_64__
	IF_ABOVE(OTHER_CALLS, 1), ANSWER(EPERM),
#endif

	/* Programs and processes. */
	FORBID(SYS_execve),
	FORBID(SYS_execveat),
	FORBID(SYS_memfd_create),
	FORBID(CALL_MEMFD_SECRET),
#ifdef __x86_64__
	FORBID(SYS_fork),
	FORBID(SYS_vfork),
#endif

	/* Other processes. */
	FORBID_TRACING
	FORBID(SYS_process_vm_readv),
	FORBID(SYS_process_vm_writev),
	FORBID(SYS_kcmp),
	FORBID(CALL_PIDFD_GETFD),
	FORBID(CALL_PROCESS_MADVISE),

	/* Namespaces and file systems. */
	FORBID(SYS_unshare),
	FORBID(SYS_setns),
	FORBID(SYS_mount),
	FORBID(SYS_umount2),
	FORBID(SYS_pivot_root),
	FORBID(SYS_chroot),
	FORBID(CALL_OPEN_TREE),
	FORBID(CALL_OPEN_TREE_ATTR),
	FORBID(CALL_MOVE_MOUNT),
	FORBID(CALL_FSOPEN),
	FORBID(CALL_FSCONFIG),
	FORBID(CALL_FSMOUNT),
	FORBID(CALL_FSPICK),
	FORBID(CALL_MOUNT_SETATTR),
	FORBID(SYS_swapon),
	FORBID(SYS_swapoff),
	FORBID(SYS_quotactl),
	FORBID(CALL_QUOTACTL_FD),
	FORBID(SYS_mknodat),
#ifdef __x86_64__
	FORBID(SYS_mknod),
#endif
	FORBID(SYS_open_by_handle_at),
	FORBID(SYS_fanotify_init),

	/* The kernel and the machine. */
	FORBID(SYS_init_module),
	FORBID(SYS_finit_module),
	FORBID(SYS_delete_module),
	FORBID(SYS_kexec_load),
#ifdef SYS_kexec_file_load
	FORBID(SYS_kexec_file_load),
#endif
	FORBID(SYS_bpf),
	FORBID(SYS_perf_event_open),
	FORBID(SYS_userfaultfd),
	FORBID(CALL_IO_URING_SETUP),
	FORBID(SYS_reboot),
	FORBID(SYS_syslog),
	FORBID(SYS_acct),
	FORBID(SYS_sethostname),
	FORBID(SYS_setdomainname),
	FORBID(SYS_settimeofday),
	FORBID(SYS_clock_settime),
	FORBID(SYS_adjtimex),
	FORBID(SYS_clock_adjtime),
#ifdef __x86_64__
	FORBID(SYS_iopl),
	FORBID(SYS_ioperm),
	FORBID(SYS_modify_ldt),
#endif

	/* The kernel's keys. */
	FORBID(SYS_add_key),
	FORBID(SYS_request_key),
	FORBID(SYS_keyctl),

	/* Its flags are behind a pointer. Who hears that it is not there takes clone(). */
	IF(CALL_CLONE3, 1), ANSWER(ENOSYS),
	IF(SYS_clone, 4 + PROCESSES),
		LOAD(args[0]),
		IF_ANY(NAMESPACES, 1), ANSWER(EPERM),
		FORBID_PROCESSES
		ALLOW,

	/* Sockets of IP that are not raw, of names, and of netlink those of routes. */
	IF(SYS_socket, 16),
		LOAD(args[0]),
		IF(AF_UNIX, 1), ALLOW,
		IF(AF_NETLINK, 4),
			LOAD(args[2]),
			IF(NETLINK_ROUTE, 1), ALLOW,
			ANSWER(EPERM),
		IF_NOT(AF_INET, 1),
		IF(AF_INET6, 5),
			LOAD(args[1]),
			MASK(SOCKET_TYPE),
			IF_NOT(SOCK_RAW, 2), IF_NOT(SOCK_PACKET, 1), ALLOW,
		ANSWER(EPERM),

	/* Pairs are made of other families, too, and their modules loaded. */
	IF(SYS_socketpair, 4),
		LOAD(args[0]),
		IF(AF_UNIX, 1), ALLOW,
		ANSWER(EPERM),

	/* Memory is to be written or to be run. Libraries that names need are mapped. */
	IF(SYS_mmap, 5),
		LOAD(args[2]),
		MASK(PROT_WRITE | PROT_EXEC),
		IF(PROT_WRITE | PROT_EXEC, 1), ANSWER(EPERM),
		ALLOW,
	IF_NOT(SYS_mprotect, 1),
	IF(SYS_pkey_mprotect, 4),
		LOAD(args[2]),
		IF_ANY(PROT_EXEC, 1), ANSWER(EPERM),
		ALLOW,
	FORBID(SYS_shmat),
	/* READ_IMPLIES_EXEC: then all that may be read may be run, whatever is asked for. */
	FORBID(SYS_personality),

	/* To type into the terminal that it was started from. */
	IF(SYS_ioctl, 5),
		LOAD(args[1]),
		IF(TIOCSTI, 1), ANSWER(EPERM),
		IF(TIOCLINUX, 1), ANSWER(EPERM),
	ALLOW,
};

int sandbox_enter(void)
{
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(*filter),
		.filter = (struct sock_filter *)filter,
	};

	/* Without it only root may; and nothing is run that it would matter to. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* seccomp(), which is younger, is not in systemd's @system-service. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

#else

int sandbox_enter(void)
{
	return -ENOSYS;
}

#endif
