# SPDX-License-Identifier: MIT
"""Of each experiment with transfers, a few runs so small that a test can do them all."""

from types import ModuleType
from typing import Any

from experiments.catalogue import (
    extension_costs,
    fairness,
    host_cc,
    paths_bulk,
    paths_share,
    share,
    slow_reader,
)
from experiments.catalogue.paths_reinject import FAR_WIFI
from experiments.workloads import objects, radio_apps, rivals, thin_beside, udp, webs

# What is measured begins when whatever is beside it has its rate. Here nobody looks at a rate.
SETTLES: tuple[tuple[ModuleType, str], ...] = (
    *((it, "SETTLE_S") for it in (extension_costs, fairness, host_cc, objects, paths_bulk)),
    *((it, "SETTLE_S") for it in (paths_share, share, thin_beside, udp, webs)),
    *((rivals, "HEAD_START_S"), (slow_reader, "BEGIN_S"), (thin_beside, "ALONE_S")),
)
SETTLED_S = 0.7
# Of what is done again and again.
FEWER = ((radio_apps, "PAGES", radio_apps.PAGES[:2]),)
SMT_TWO = tuple(f"smt-two-{number}" for number in range(1, 6))
EXTENDS = ("auto", "never")
# For what lasts as long however much is carried: each packet costs the processor its time.
SLOW = {"mbps": 8.0}
HURRY = {"p1": 0.5, "p2": 1.0, "p3": 0.5, "p4": 0.5, "link": "linkem", "mbps": None, "rtt_ms": None}
RADIO = {"radio": "up", "settle_s": 0.5}
TWO_SERVERS = {"way": "direct", "topology": "two", "servers": 2, "size": 600_000, "chunk": 100_000}
SMALL_FILE = {
    **{"preset": "wifi-lte", "size": 50_000, "warm": True, "warm_size": 200_000, "idle_s": 0.3}
}
SMALL: dict[str, list[dict[str, Any]]] = {
    "asymmetric": [
        {"size": 50_000, "transfer": transfer, "up_mbps": 5.0}
        for transfer in ("down", "up", "down-beside-up")
    ],
    "attacks": [
        {"attack": attack, "quiet_s": 0.5, "attack_s": 1.0}
        for attack in ("network-of-64", "replayed-handshake")
    ],
    "blocking": [
        {"bulks": 3, "bulk_way": "up", **SLOW},
        {"trace_down": "synthetic-lte", "loss": 0.01, "rivals": 1},
        {"bulk_way": "up", "binding": "early", "jitter_ms": 2.0, **SLOW},
        {"bottleneck": "sender", "link": "veth", "rtt_ms": 0.0, "wan_rtt_ms": 0.0, "mbps": 20.0},
    ],
    "dns-router": [
        {"queries": 40, "every_ms": 20.0, "loss": 0.05, "upstream": upstream, "way": way}
        for upstream, way in (("none", "direct"), ("direct", "direct"), ("forward", "pipes"))
    ],
    "download": [{"size": 50_000, "way": way} for way in ("pipes", "direct", "mptcp")],
    "download-40": [{"size": 50_000, "down_mbps": 40.0}],
    "extension-costs": [
        {"load": "stream", "seconds": 1.0, "extend": "never", **SLOW},
        {"load": "object", "seconds": 1.0, "bottleneck": "sender", **SLOW},
        {"load": "both-ways", "seconds": 1.0, "up_mbps": 2.0},
    ],
    "extension-lossy": [{"size": 50_000, "loss": 0.01, "extend": extend} for extend in EXTENDS],
    "fairness": [{"plain": 2, "seconds": 1.0, "way": way, **SLOW} for way in ("pipes", "direct")],
    "handover": [{"preset": "bt-wifi", "way": "direct", "policy": "h2", "slope": 20.0, **HURRY}],
    "host-cc": [
        {"seconds": 1.0, "plain": 1, "aggregate": "dswa", "lambda": 2.0, **SLOW},
        {"seconds": 1.0, "way": "direct", **SLOW},
    ],
    "loss-blocking": [
        {"seconds": 1.0, "loss": 0.05, "connections": 3},
        {"seconds": 1.0, "connections": 2, "way": "direct"},
    ],
    "mhttp-event": [{**TWO_SERVERS, "size": 9_000_000}, {**TWO_SERVERS, "fetch": "http"}],
    "mhttp-large": [{**TWO_SERVERS, "scheduler": "ahead"}],
    "mhttp-one-server": [
        {**TWO_SERVERS, "servers": 1, "size": 3_000_000, "fetch": "http", "way": way}
        for way in ("pipes", "mptcp")
    ]
    + [{**TWO_SERVERS, "servers": 1, "size": 3_000_000, "way": "pipes"}],
    "mhttp-overhead": [
        {"way": "direct", "size": 300_000, "chunk": 100_000, "scheduler": "next"},
        {"way": "direct", "size": 300_000, "fetch": "http"},
    ],
    "mhttp-resolvers": [
        {**TWO_SERVERS, "servers": 3, "resolvers": asked} for asked in ("local", "public", "both")
    ],
    "mhttp-scheduler": [{**TWO_SERVERS, "second_mbps": 2.0, "scheduler": "deadline"}],
    "mhttp-small": [
        TWO_SERVERS,
        {**TWO_SERVERS, "size": 8_000},
        {**TWO_SERVERS, "fetch": "http", "path": 2},
    ],
    "object": [
        {"bulk": False, **SLOW},
        {"bulk": True, "bulk_way": "up", **SLOW},
        {"way": "direct", **SLOW},
    ],
    "object-buffers": [
        {"pipes": 1, "binding": "early", "extend": "never", "app_buffer": 100_000, **SLOW}
    ],
    "object-size": [{"beside": 0}, {"beside": 200_000, "binding": "early"}],
    "overhead": [{"load": load} for load in ("file", "upload", "objects", "short", "video")],
    "page-paths": [
        {"preset": "wifi-lte", "mbps": None, "page": "site-02", "second_rtt_ms": 40.0, **how}
        for how in ({"path_policy": "ecf", "conn_policy": "drr"}, {"way": "mptcp"})
    ],
    "paths-file": [
        {"preset": "wifi-lte", "size": 50_000, "path_policy": policy, "second_rtt_ms": 40.0}
        for policy in ("ecf", "dems-s", "one:lte")
    ],
    "paths-rates": [
        {**SMALL_FILE, "down_mbps": 2.5, "second_down_mbps": 17.5, "path_policy": "dems-f"}
    ],
    "paths-split": [
        {**SMALL_FILE, "path_policy": "split", "wifi_share": 0.3},
        {**SMALL_FILE, "path_policy": "best-split", "second_rtt_ms": 270.0},
        {**SMALL_FILE, "path_policy": "best-split", "warm": False},
    ],
    "paths-vary": [
        {**SMALL_FILE, "path_policy": "dems-f", **traces}
        for traces in (
            {"delay_trace": "synthetic-rtt:50:40:1", "second_delay_trace": "synthetic-rtt:70:50:1"},
            {"trace_down": "synthetic-rate:7:54:1", "second_trace_down": "synthetic-rate:9:92:1"}
            | {"varies": "rate"},
        )
    ],
    "radio-apps": [
        {**RADIO, "app": app, "load": load, "seconds": 2.0, "way": way, **SLOW}
        for app, load, way in (
            ("page", "upload", "direct"),
            ("video", "alone", "direct"),
            ("download", "upload", "direct"),
            ("udp", "upload", "direct"),
            ("object", "upload", "pipes"),
        )
    ],
    "paths-reinject": [
        {**FAR_WIFI, "preset": "wifi-lte", "size": 50_000, "loss": 0.01, "reinject": mode}
        for mode in ("timely", "mpflex")
    ]
    + [{"preset": "wifi-lte", "size": 50_000, "silent_ms": 100.0, "silent_path": "lte"}],
    "paths-bulk": [
        {"preset": "wifi-lte", "how": how, "transfer": transfer, "seconds": 0.5, **SLOW}
        for how, transfer in (("both", "up"), ("each", "down"))
    ],
    "paths-failover": [
        {"preset": "wifi-lte", "pipes": 4, "at_s": 0.7, "after_s": 2.2, **how, **SLOW}
        for how in (
            {"event": "wifi-down", "transfer": "down", "backup": True},
            {"event": "lte-silent", "transfer": "up"},
            {"event": "only-lte", "transfer": "up"},
        )
    ],
    **{
        name: [
            {"preset": "wifi-lte", "size": 20_000, "count": 4, "parallel": 2, **how}
            for how in (
                {"pipes": 1, "path_policy": "txdelay", "mbps": 4.0},
                {"way": "mptcp", "primary": "lte", "mbps": 4.0},
            )
        ]
        for name in ("paths-flows", "paths-proxy")
    },
    "paths-objects": [
        {"preset": "mobile-dsl", "mbps": None, "rtt_ms": None, "objects": 9, "gap_s": 0.1, **how}
        for how in (
            {"conn_policy": "srpt", "path_policy": "ecf"},
            {"conn_policy": "rr", "path_policy": "minrtt"},
        )
    ],
    "paths-share": [
        {"preset": "wifi-lte", "rivals": 1, "seconds": 1.0, "shared": "lte", "how": how}
        | {"way": "direct" if how == "plain-4" else "pipes", "mbps": 4.0}
        for how in ("both", "bound", "copies", "hashed", "plain-4")
    ],
    "paths-rules": [
        {"preset": "wifi-lte", "rules": rules, "seconds": 0.3, "second_rtt_ms": 70.0}
        for rules in ("none", "both")
    ],
    "radio-delay": [{"radio": "up", "settle_s": 0.5, "seconds": 1.0, "up_mbps": 8.0}],
    "radio-error": [
        {"radio": "up", "settle_s": 0.5, "seconds": 1.5, "way": way} for way in ("direct", "pipes")
    ],
    "radio-qcut": [
        {"radio": "up", "settle_s": 0.5, "seconds": 1.0, "gate": "delay:20", "way": "direct"}
    ],
    "recovery": [{"event": "reset", "at_s": 0.5, "after_s": 1.0, "extend": "never"}],
    "reordering": [{"size": 2_500_000, "binding": "early", "pipe_sndbuf": 100_000}],
    "sender-blocking": [
        {"bottleneck": "sender", "binding": "early", "app_buffer": 50_000},
        {"bottleneck": "sender", "way": "direct"},
    ],
    "sender-blocking-lte": [{"bottleneck": "network"}],
    "share": [
        {"seconds": 1.0, "rivals": 2, "rival_cc": "reno", **way, **SLOW}
        for way in ({"way": "pipes"}, {"way": "direct"})
    ],
    "slow-reader": [{"readers": 2, "takes": "1.2MB/s", "alone_s": 0.5, "beside_s": 0.5}],
    "slow-reader-crowd": [{"readers": 40, "alone_s": 0.5, "beside_s": 0.5}],
    "smt-single": [
        {"way": "direct", "seconds": 0.5, "rest_s": 0.1, "carrier": carrier}
        for carrier in ("tcp", "quic", "quic-ordered")
    ]
    + [{"way": "pipes", "seconds": 0.5, "rest_s": 0.1, "carrier": "tcp"}],
    **{
        name: [
            {"way": "direct", "topology": "two", "seconds": 0.5, "distribution": 8, **more}
            for more in ({"policy": "even"}, {"policy": "closure", "printed": True})
        ]
        for name in SMT_TWO
    },
    "thin": [{"queries": 10}, {"queries": 5, "way": "direct"}],
    "thin-beside": [{"queries": 10, "bulk": bulk, **SLOW} for bulk in ("none", "same", "apart")],
    "thin-settings": [
        {"queries": 20, "every_ms": 5.0, "early_retrans": 0},
        {"queries": 10, "every_ms": 5.0, "thin_linear_timeouts": 1, "way": "direct"},
    ],
    "thin-loss": [
        {"queries": 20, "every_ms": 5.0, "thin": "same-pipe"},
        {"queries": 12, "burst": 3, "by": "fresh", "way": "direct"},
        {"queries": 10, "by": "tls", "way": "direct"},
        {"queries": 200, "every_ms": 2.0, "by": "udp", "stub": "windows", "loss": 0.02}
        | {"way": "direct"},
    ],
    "short-connections": [{"count": 10, "parallel": 4}],
    "throughput": [{"direction": "both", "seconds": 1}],
    "udp": [{"seconds": 0.5, **SLOW}, {"seconds": 0.5, "load": "alone", "way": "direct"}],
    "video": [{"seconds": 1.0, "bulk": True}, {"seconds": 1.0, "bulk": False}],
    "walkthrough": [{"count": 3}],
    "web-beside": [
        {"rounds": 1, "bulk_s": 1.0, "binding": "early", "jitter_ms": 2.0},
        {"rounds": 1, "bulk_s": 1.0, "rivals": 1, "loss": 0.01},
    ],
}
