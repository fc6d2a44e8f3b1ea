/* SPDX-License-Identifier: MIT */
#include "addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mux/base/addr.h"

struct sockaddr_storage address(const char *text, uint16_t port)
{
	struct sockaddr_storage addr;
	socklen_t len;

	assert_int_equal(addr_parse(text, NULL, 1, &addr, &len), 0);
	addr_set_port(&addr, port);
	return addr;
}
