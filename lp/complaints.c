/* SPDX-License-Identifier: MIT */
#include "complaints.h"

#include <stdio.h>
#include <string.h>

#include "../mux/base/log.h"
#include "../mux/base/plural.h"
#include "../mux/pipe/transport.h"

/* Numbers are not compared: which of the pipes failed first does not matter. */
static bool same_reason(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	do {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b)
			return false;
		b++;
	} while (*a++);
	return true;
}

static void complain(struct complaints *c, const char *what, const char *peer,
		     const char *why, const char *meanwhile)
{
	if (c->came_back)
		why = "lp's own connections are redirected to lp; exclude them "
		      "from what the kernel redirects";
	if (same_reason(c->told, why))
		return;
	snprintf(c->told, sizeof(c->told), "%s", why);
	log_error(c->log, "%s %s: %s; %s meanwhile", what, peer, why, meanwhile);
}

static const char no_pipes[] = "no pipes to";
static const char lost_them[] = "lost the pipes to";
static const char refused[] = "trying again, applications are refused";

void complaints_none(struct complaints *c, const char *peer, const char *why)
{
	complain(c, no_pipes, peer, why, refused);
}

void complaints_lost(struct complaints *c, const char *peer, const char *why)
{
	complain(c, lost_them, peer, why, refused);
}

void complaints_anew(struct complaints *c, const char *peer, const char *why)
{
	complain(c, lost_them, peer, why,
		 "another session begins, applications wait");
}

void complaints_forget(struct complaints *c)
{
	c->told[0] = '\0';
}

void complaints_up(struct complaints *c, const char *peer, unsigned int n,
		   const char *unextended)
{
	complaints_forget(c);
	log_info(c->log, "%u pipe%s to %s %s up%s%s%s", n, plural(n), peer,
		 n == 1 ? "is" : "are",
		 *unextended ? ", without the extension (" : "", unextended,
		 *unextended ? ")" : "");
}

void complaints_fallback(struct complaints *c, const char *peer, const int *fds,
			 unsigned int n)
{
	unsigned int fallen = 0, i;

	for (i = 0; i < n; i++)
		fallen += transport_of(fds[i]) == TRANSPORT_MPTCP &&
			  transport_fell_back(fds[i]);
	if (fallen && !c->fell_back)
		log_warn(c->log, "mptcp: %u of %u pipe%s to %s go%s on as plain TCP; rp takes MPTCP when its --pipe names it",
			 fallen, n, plural(n), peer, fallen == 1 ? "es" : "");
	c->fell_back = fallen > 0;
}

void complaints_init(struct complaints *c, struct log *log)
{
	*c = (struct complaints){ .log = log };
}
