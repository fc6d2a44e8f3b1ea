/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json.h"
#include "netns.h"
#include "rtnl.h"

/* Frames that may wait for us, so that a short stall loses none unseen. */
enum { TX_QUEUE_LEN = 10000 };

struct setup {
	struct tap *tap;
	const struct tap_spec *spec;
	int sock;
	const char *step;		/* what failed, if it did */
};

static struct ifreq request(const struct tap *tap)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memcpy(ifr.ifr_name, tap->dev, IFNAMSIZ);
	return ifr;
}

static int control(struct setup *s, unsigned long what, struct ifreq *ifr)
{
	return ioctl(s->sock, what, ifr) < 0 ? -errno : 0;
}

static int attach(struct setup *s)
{
	struct tap *tap = s->tap;
	struct ifreq ifr;

	s->step = "/dev/net/tun";
	tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap->fd < 0)
		return -errno;
	s->step = "making the device";
	snprintf(tap->dev, sizeof(tap->dev), "%s", s->spec->dev);
	ifr = request(tap);
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL;
	return ioctl(tap->fd, TUNSETIFF, &ifr) < 0 ? -errno : 0;
}

static int set_mac(struct setup *s)
{
	struct ifreq ifr = request(s->tap);
	int ret = 0;

	s->step = "MAC address";
	ifr.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(ifr.ifr_hwaddr.sa_data, s->spec->mac, 6);
	if (s->spec->has_mac)
		ret = control(s, SIOCSIFHWADDR, &ifr);
	if (!ret)
		ret = control(s, SIOCGIFHWADDR, &ifr);
	memcpy(s->tap->mac, ifr.ifr_hwaddr.sa_data, 6);
	return ret;
}

static int set_sizes(struct setup *s)
{
	struct ifreq ifr = request(s->tap);
	int ret;

	s->step = "MTU";
	ifr.ifr_mtu = (int)s->spec->mtu;
	ret = control(s, SIOCSIFMTU, &ifr);
	if (ret)
		return ret;
	s->tap->mtu = s->spec->mtu;
	s->step = "queue length";
	ifr = request(s->tap);
	ifr.ifr_qlen = TX_QUEUE_LEN;
	return control(s, SIOCSIFTXQLEN, &ifr);
}

static int ethtool(struct setup *s, uint32_t command, uint32_t *value)
{
	struct ethtool_value v = { .cmd = command, .data = *value };
	struct ifreq ifr = request(s->tap);
	int ret;

	ifr.ifr_data = (char *)&v;
	ret = control(s, SIOCETHTOOL, &ifr);
	*value = v.data;
	return ret;
}

/* Turns one offload off and reads it back. */
static int without(struct setup *s, uint32_t set, uint32_t get, bool *left_on)
{
	uint32_t value = 0;
	int ret = ethtool(s, set, &value);

	/* What a device never had cannot be turned off; reading tells. */
	if (ret && ret != -EOPNOTSUPP)
		return ret;
	ret = ethtool(s, get, &value);
	*left_on = value;
	if (!ret && value)
		ret = -ENOTSUP;
	return ret;
}

static int no_offloads(struct setup *s)
{
	struct tap *tap = s->tap;
	struct rtnl_link link;
	int ret;

	s->step = "turning TSO off";
	ret = without(s, ETHTOOL_STSO, ETHTOOL_GTSO, &tap->tso);
	if (ret)
		return ret;
	s->step = "turning GSO off";
	ret = without(s, ETHTOOL_SGSO, ETHTOOL_GGSO, &tap->gso);
	if (ret)
		return ret;
	s->step = "turning GRO off";
	ret = without(s, ETHTOOL_SGRO, ETHTOOL_GGRO, &tap->gro);
	if (ret)
		return ret;
	s->step = "gso_max_segs";
	ret = rtnl_set_gso_max_segs(tap->rtnl, tap->ifindex, 1);
	if (!ret)
		ret = rtnl_get(tap->rtnl, tap->ifindex, &link);
	if (!ret && link.gso_max_segs != 1)
		ret = -ENOTSUP;
	tap->gso_max_segs = 1;
	return ret;
}

static int no_ipv6(struct setup *s)
{
	char path[64 + IFNAMSIZ];
	int fd, ret = 0;

	s->tap->ipv6 = s->spec->ipv6;
	if (s->spec->ipv6)
		return 0;
	s->step = "disable_ipv6";
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6",
		 s->tap->dev);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;	/* no IPv6 at all */
	if (write(fd, "1", 1) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int bring_up(struct setup *s)
{
	struct ifreq ifr = request(s->tap);
	int ret;

	s->step = "bringing the device up";
	ret = control(s, SIOCGIFFLAGS, &ifr);
	if (ret)
		return ret;
	ifr.ifr_flags |= IFF_UP;
	return control(s, SIOCSIFFLAGS, &ifr);
}

static int identify(struct setup *s)
{
	struct ifreq ifr = request(s->tap);
	int ret;

	s->step = "the device's index";
	ret = control(s, SIOCGIFINDEX, &ifr);
	s->tap->ifindex = ifr.ifr_ifindex;
	if (ret)
		return ret;
	s->step = "rtnetlink";
	s->tap->rtnl = rtnl_open();
	return s->tap->rtnl < 0 ? s->tap->rtnl : 0;
}

static int set_up(struct setup *s)
{
	static int (*const steps[])(struct setup *s) = {
		attach, identify, set_mac, set_sizes, no_offloads, no_ipv6,
		bring_up,
	};
	int ret = 0;

	s->step = "a socket";
	s->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->sock < 0)
		return -errno;
	for (size_t i = 0; !ret && i < sizeof(steps) / sizeof(*steps); i++)
		ret = steps[i](s);
	close(s->sock);
	return ret;
}

int tap_open(struct tap *tap, const struct tap_spec *spec, int netns, int home,
	     char *why, size_t why_len)
{
	struct setup s = { .tap = tap, .spec = spec,
			   .step = "entering the namespace" };
	int ret, back;

	memset(tap, 0, sizeof(*tap));
	tap->fd = -1;
	tap->rtnl = -1;
	tap->netns = spec->netns;
	ret = netns_enter(netns);
	if (!ret)
		ret = set_up(&s);
	back = netns_enter(home);
	if (!ret && back) {
		s.step = "leaving the namespace";
		ret = back;
	}
	if (ret) {
		snprintf(why, why_len, "%s: %s", s.step, strerror(-ret));
		tap_close(tap);
	}
	return ret;
}

void tap_close(struct tap *tap)
{
	if (tap->fd >= 0)
		close(tap->fd);
	if (tap->rtnl >= 0)
		close(tap->rtnl);
	tap->fd = -1;
	tap->rtnl = -1;
}

ssize_t tap_read(const struct tap *tap, void *frame, size_t room)
{
	ssize_t n = read(tap->fd, frame, room);

	return n < 0 ? -errno : n;
}

bool tap_write(const struct tap *tap, const void *frame, size_t len)
{
	return write(tap->fd, frame, len) == (ssize_t)len;
}

static const char *boolean(bool b)
{
	return b ? "true" : "false";
}

void tap_print(const struct tap *tap, FILE *out)
{
	const uint8_t *m = tap->mac;
	struct rtnl_link link;

	rtnl_get(tap->rtnl, tap->ifindex, &link);
	fputs("{\"netns\":", out);
	json_string(out, tap->netns);
	fputs(",\"dev\":", out);
	json_string(out, tap->dev);
	fprintf(out,
		",\"ifindex\":%d,\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\"",
		tap->ifindex, m[0], m[1], m[2], m[3], m[4], m[5]);
	fprintf(out, ",\"mtu\":%u,\"ipv6\":%s", tap->mtu, boolean(tap->ipv6));
	fprintf(out, ",\"tso\":%s,\"gso\":%s,\"gro\":%s,\"gso_max_segs\":%u",
		boolean(tap->tso), boolean(tap->gso), boolean(tap->gro),
		tap->gso_max_segs);
	fprintf(out, ",\"unread_dropped\":%llu,\"unreceived_dropped\":%llu}",
		(unsigned long long)link.tx_dropped,
		(unsigned long long)link.rx_dropped);
}
