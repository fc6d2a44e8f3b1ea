/* SPDX-License-Identifier: MIT */
/*
 * A capture of one side, timestamps in nanoseconds: frames that the side sent
 * at the moment they were read, frames that it got at the moment they were
 * written.
 */
#ifndef LINKEM_PCAP_H
#define LINKEM_PCAP_H

#include <stdint.h>
#include <stdio.h>

struct pcap {
	FILE *out;		/* NULL: no capture */
	uint32_t snaplen;
	int64_t to_wall;	/* from CLOCK_MONOTONIC to the wall clock */
};

/* 0 or -errno. */
int pcap_open(struct pcap *pcap, const char *path, uint32_t snaplen);
void pcap_close(struct pcap *pcap);

void pcap_add(struct pcap *pcap, const uint8_t *frame, uint32_t len,
	      int64_t at);

#endif
