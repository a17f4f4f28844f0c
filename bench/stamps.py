#!/usr/bin/env python3
"""How true the stamps are: `wait` beside the server's own account and beside a trace of the loopback interface.

Drives answers of a known delay at a steady rate. Three witnesses of the time a request was away:
  handed   the target's own: from the request's arrival in its kernel to the call that hands over the answer
  written  the same until that call has returned; the answer left in between
  trace    a packet socket on the loopback interface (needs root): from the request's last packet leaving the
           client to the answer's first packet arriving, by the kernel's stamps
The trace costs both sides alike, so it can be left out (--no-trace) to see that it changes nothing.
"""
import argparse
import os
import socket
import struct

from processes import built, drive, known, phase, quantile, target, truth

SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL, PACKET_OUTGOING = 33, 35, 0x0003, 4
QUANTILES = [0.5, 0.9, 0.99, 0.999]


class Trace:
    """Packets of one port, with the kernel's stamps. Read when all is over: a reader would disturb the run."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 512 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.bind(("lo", 0))
        self.socket.setblocking(False)

    def packets(self):
        """Each packet with a payload: stamp, outgoing or not, client's port, to the server or not."""
        while True:
            try:
                frame, control, _, address = self.socket.recvmsg(128, 64)
            except BlockingIOError:
                return
            if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
                continue
            header = (frame[14] & 15) * 4
            length = struct.unpack_from("!H", frame, 16)[0] - header
            tcp = 14 + header
            source, destination = struct.unpack_from("!HH", frame, tcp)
            if self.port not in (source, destination) or length <= (frame[tcp + 12] >> 4) * 4:
                continue
            seconds, nanos = struct.unpack("qq", control[0][2])
            to_server = destination == self.port
            yield seconds * 10**9 + nanos, address[2] == PACKET_OUTGOING, source if to_server else destination, to_server

    def waits(self):
        """For each exchange: from the request's last packet leaving to the answer's first one arriving."""
        left, waits = {}, []
        # Each packet is seen twice on a loopback: going out and coming in.
        for stamp, outgoing, client, to_server in self.packets():
            if to_server and outgoing:
                left[client] = stamp
            elif not to_server and not outgoing and client in left:
                waits.append(stamp - left.pop(client))
        return waits


def row(delay_us, options, args):
    with target(args.parallax) as address:
        trace = None if args.no_trace else Trace(int(address.rsplit(":", 1)[1]))
        document, _ = drive(args.parallax, ["-c", "16", "-r", f"{args.rate}/s", "-d", f"{args.seconds}s", *options],
                            f"http://{address}/delay?us={delay_us}")
        said = phase(document, "wait")
        server = truth(address)
        # Asking for the truth is an exchange too, the last one.
        traced = trace.waits()[: said["count"]] if trace else []
    print(f"\nanswers of {delay_us} us at {args.rate}/s for {args.seconds} s, {said['count']} of them; us")
    print(f"  {'':12}" + "".join(f"{'p' + format(q * 100, 'g'):>10}" for q in QUANTILES))
    keys = {0.5: "p50_ns", 0.9: "p90_ns", 0.99: "p99_ns", 0.999: "p99_9_ns"}
    ours = [known(said, q) for q in QUANTILES]
    witnesses = {name: [server[name if name == "handed" else "response"][keys[q]] for q in QUANTILES]
                 for name in ("handed", "written")}
    if traced:
        witnesses["trace"] = [quantile(traced, q) for q in QUANTILES]
    print(f"  {'wait says':12}" + "".join(cell(value) for value in ours))
    for name, values in witnesses.items():
        print(f"  {name:12}" + "".join(cell(value) for value in values))
    for name, values in witnesses.items():
        errors = [None if mine is None else mine - true for mine, true in zip(ours, values)]
        print(f"  - {name:10}" + "".join(cell(value) for value in errors))


def cell(nanos):
    return f"{'too few':>10}" if nanos is None else f"{nanos / 1000:10.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--delays", type=int, nargs="+", default=[1000, 5000], help="in microseconds")
    parser.add_argument("--no-trace", action="store_true")
    parser.add_argument("--parallax", help="the binary to measure [default: built with the profile dist]")
    args, options = parser.parse_known_args()
    args.parallax = args.parallax or built()
    if os.geteuid() != 0 and not args.no_trace:
        print("not root: no trace of the loopback interface")
        args.no_trace = True
    for delay in args.delays:
        row(delay, options, args)


if __name__ == "__main__":
    main()
