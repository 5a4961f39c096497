"""Reads a pcapng file with dpkt and compares it with the truth of the simulation.

Usage: read_pcapng.py FILE.pcapng TRUTH.json
"""

import sys
from collections import Counter

import dpkt
from truth import Truth, same

truth = Truth(sys.argv[2])
frames, sent_by_dscp, times = 0, Counter(), []
with open(sys.argv[1], "rb") as file:
    for time, frame in dpkt.pcapng.Reader(file):
        times.append(time)
        ip = dpkt.ethernet.Ethernet(frame).data
        assert isinstance(ip, dpkt.ip.IP), f"frame {frames} is no IPv4"
        # Captures may contain only the first bytes of a frame, but always its headers.
        assert ip.p in (dpkt.ip.IP_PROTO_TCP, dpkt.ip.IP_PROTO_UDP) and ip.len + 14 >= len(frame)
        frames += 1
        # Only packets that this machine sent count, because other machines set the marks of received packets.
        if ip.tos >> 2:
            sent_by_dscp[str(ip.tos >> 2)] += 1
assert times == sorted(times), "frames are sorted by time"
flows = truth.all["flows"]
same("frames", frames, sum(f["received_packets"] + f["sent_packets"] for f in flows))
marked = Counter()
for flow in flows:
    marked.update({mark: n for mark, n in flow["sent_by_dscp"].items() if mark != "0"})
same("frames by DSCP", sent_by_dscp, marked)
print(f"the capture matches the truth: {frames} frames, by DSCP {dict(sent_by_dscp)}")
