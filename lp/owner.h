/* SPDX-License-Identifier: MIT */
/*
 * Whose a socket of this host is: the user by the kernel's list of sockets (sock_diag), the
 * program by /proc. Clients of other hosts, or of other network namespaces, have none here.
 */
#ifndef TM3_OWNER_H
#define TM3_OWNER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct owner {
	uid_t user;
	unsigned int inode;	/* of the socket */
};

/*
 * For owner_find(). -errno: there is none. To be called before the process forbids itself
 * sockets of that kind.
 */
int owner_open(void);

/*
 * Has the user namespace of this process all users? Of those that it has not, as in a service of
 * systemd's with PrivateUsers=yes, the kernel says that they are one and the same.
 */
bool owner_knows_users(void);
/* Does /proc show this process those of other users? */
bool owner_sees_processes(void);

/*
 * Of the TCP socket from @from to @to. 0; -ENOENT: there is none here; -EOVERFLOW: it is of a
 * user that this user namespace has not; or another -errno.
 */
int owner_find(int diag, const struct sockaddr_storage *from,
	       const struct sockaddr_storage *to, struct owner *owner);

/*
 * Has a process that runs @program, a file's name or with a slash all of its path, that socket?
 * 1 or 0; -errno: a process of that user could not be looked at, and no other one has it;
 * -ESRCH: none of that user is seen.
 */
int owner_runs(const struct owner *owner, const char *program);

#endif
