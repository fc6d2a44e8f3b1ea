/* SPDX-License-Identifier: MIT */
/*
 * The inside of a connection, for the files that are its parts: conn (its socket
 * and its states), conn_ending (its orderly end).
 */
#ifndef TM3_CONN_INSIDE_H
#define TM3_CONN_INSIDE_H

#include "conn.h"

/* conn: at once. Whether that is a reset is up to the socket, or it is one. */
void conn_close_socket(struct conn *c);
void conn_reset_socket(struct conn *c);

/*
 * conn_ending. The queue is written; send the FIN; is it time to close? And read
 * what is nobody's: false at the end of it.
 */
void conn_all_written(struct conn *c);
void conn_linger(struct conn *c);
void conn_linger_look(struct conn *c);
bool conn_discard(struct conn *c);

#endif
