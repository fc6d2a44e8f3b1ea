/* SPDX-License-Identifier: MIT */
/*
 * Sockets that leave this host by the way of a path: bound to its address, to its device, or
 * to both.
 */
#ifndef TM3_DEPARTURE_H
#define TM3_DEPARTURE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../mux/pipe/transport.h"
#include "../mux/settings/path_set.h"

/*
 * As transport_socket(); @path may be NULL: any way will do. -errno: it has no address
 * of @family, or its address or device is not there now.
 */
int departure_socket(const struct path_spec *path, enum transport kind,
		     int family);

/*
 * Would a socket that goes to @to over the device of @path leave from @from now? While a device has
 * no address the kernel takes one of another device, to which the answers go then. Also if that
 * is not known, or @path has no device.
 */
bool departure_is_from(const struct path_spec *path,
		       const struct sockaddr_storage *to,
		       const struct sockaddr_storage *from);

#endif
