/* SPDX-License-Identifier: MIT */
/*
 * Pipes over SCTP: one-to-one sockets, by the kernel's own interface alone.
 *
 * One message is one of the association's user messages, and no larger than
 * one chunk where the path's packets are that large: what is lost is one message. The
 * stream is the connection's id modulo as many as both ends have. A message is
 * unordered, so that it waits for no other one, as soon as the connection's other end
 * was heard: until then data could overtake the SYN in such masses that
 * it had to be dropped (EARLY_MAX). Numbers put all in order, as they do
 * between pipes; on such a pipe messages overtake one another, see pipe_keeps_order().
 *
 * So a message's place on its pipe tells nothing. A run that has a count gives it to its
 * messages that count, as their PPID, in network order; all others have 0. What a message that
 * comes has is in p->ppid while it is given.
 *
 * The kernel tells of chunks, not of bytes. So the sizes of the last ones are
 * kept: those sent once are counted by it, what was acknowledged is as of the last
 * SACK.
 */
#ifndef TM3_SCTP_H
#define TM3_SCTP_H

/*
 * Options of a socket that is about to connect or to listen: streams, timers
 * as TCP has them, buffers as large as the system allows.
 */
void sctp_prepare(int fd);

#endif
