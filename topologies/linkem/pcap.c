/* SPDX-License-Identifier: MIT */
#include "pcap.h"

#include <errno.h>

#include "clock.h"

/* Of the variant with nanoseconds; both numbers in the machine's order. */
static const uint32_t MAGIC_NS = 0xa1b23c4d;
static const uint32_t VERSION = 4 << 16 | 2;

enum {
	LINKTYPE_ETHERNET = 1,
	BUFFER = 1 << 20,	/* writes to disk take time: few and large */
};

int pcap_open(struct pcap *pcap, const char *path, uint32_t snaplen)
{
	const uint32_t head[6] = { MAGIC_NS, VERSION, 0, 0,
				   snaplen, LINKTYPE_ETHERNET };

	pcap->snaplen = snaplen;
	pcap->to_wall = clock_read(CLOCK_REALTIME) - clock_now();
	pcap->out = fopen(path, "we");
	if (!pcap->out)
		return -errno;
	setvbuf(pcap->out, NULL, _IOFBF, BUFFER);
	fwrite(head, sizeof(head), 1, pcap->out);
	return fflush(pcap->out) ? -errno : 0;
}

void pcap_close(struct pcap *pcap)
{
	if (pcap->out)
		fclose(pcap->out);
	pcap->out = NULL;
}

void pcap_add(struct pcap *pcap, const uint8_t *frame, uint32_t len,
	      int64_t at)
{
	int64_t wall = at + pcap->to_wall;
	uint32_t kept = len < pcap->snaplen ? len : pcap->snaplen;
	const uint32_t head[4] = { (uint32_t)(wall / NS_PER_S),
				   (uint32_t)(wall % NS_PER_S), kept, len };

	if (!pcap->out)
		return;
	fwrite(head, sizeof(head), 1, pcap->out);
	fwrite(frame, kept, 1, pcap->out);
}
