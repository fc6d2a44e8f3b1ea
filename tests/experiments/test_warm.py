# SPDX-License-Identifier: MIT
"""What ss tells of pipes that are warm."""

from experiments.warm import windows

TOLD = (
    "0 0 10.0.2.2:6010 10.0.1.1:4711 cubic wscale:9,9 rto:254 rtt:53.1/0.9 mss:1448 cwnd:10"
    " ssthresh:7 bytes_sent:9000 lastsnd:12 lastrcv:3 pacing_rate 3Mbps\n"
    "0 0 10.0.2.2:6010 10.0.1.1:4712 cubic wscale:9,9 rto:260 rtt:54/1 mss:1448 cwnd:12"
    " bytes_sent:9000 lastrcv:3 pacing_rate 3Mbps\n"
)


def test_a_pipe_that_sent_just_now_is_one_too() -> None:
    """Over the extension there is control to send."""
    found = windows(TOLD)
    assert found == {
        "cwnd": [10, 12], "ssthresh": [7], "rtt": [53.1, 54], "rto": [254, 260],
        "lastsnd": [12, 0],
    }  # fmt: skip
