#!/usr/bin/env python3
"""A closed loop of clients on Redis: half HGETALL, half HSET of one field of 64 bytes.

Keys follow Zipf's law with exponent 0.99, as YCSB's, over `user` and 19 digits. Prints how many
seconds the run took.
"""

import argparse
import bisect
import itertools
import random
import selectors
import socket
import sys
import time

EXPONENT = 0.99  # YCSB's ZipfianGenerator
VALUE_BYTES = 64


def command(*words: bytes) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def key(number: int) -> bytes:
    return b"user%019d" % number


def connect(path: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(path)
    return client


def fill(args: argparse.Namespace, rng: random.Random) -> None:
    with connect(args.socket) as client:
        for first in range(0, args.keys, 1000):
            count = min(1000, args.keys - first)
            client.sendall(b"".join(update(first + i, rng) for i in range(count)))
            answer = b""
            while answer.count(b"\r\n") < count:
                answer += client.recv(1 << 16)
            if b"-" in answer:
                raise RuntimeError(f"Redis answered {answer[:200]!r}")


def update(number: int, rng: random.Random) -> bytes:
    value = b"%064x" % rng.getrandbits(VALUE_BYTES * 4)
    return command(b"HSET", key(number), b"field0", value)


def is_whole(answer: bytes) -> bool:
    """An integer, or an array of two bulk strings (all hashes here have one field)."""
    if answer.startswith(b":"):
        return answer.endswith(b"\r\n")
    if answer.startswith(b"*2\r\n"):
        return answer.endswith(b"\r\n") and answer.count(b"\r\n") == 5
    if answer.startswith(b"-"):
        raise RuntimeError(f"Redis answered {answer!r}")
    return False


def run(args: argparse.Namespace, rng: random.Random) -> float:
    weights = itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(args.keys))
    cumulative = list(weights)
    numbers = list(range(args.keys))
    rng.shuffle(numbers)

    def request() -> bytes:
        rank = bisect.bisect_left(cumulative, rng.random() * cumulative[-1])
        number = numbers[min(rank, args.keys - 1)]
        if rng.random() < 0.5:
            return command(b"HGETALL", key(number))
        return update(number, rng)

    selector = selectors.DefaultSelector()
    answers = {}
    left = args.operations
    started = time.monotonic()
    for _ in range(args.clients):
        client = connect(args.socket)
        answers[client] = b""
        selector.register(client, selectors.EVENT_READ)
        client.sendall(request())
    while left > 0:
        for ready, _ in selector.select():
            client = ready.fileobj
            answers[client] += client.recv(1 << 16)
            if is_whole(answers[client]):
                answers[client] = b""
                left -= 1
                if left >= args.clients:
                    client.sendall(request())
                elif left <= 0:
                    break
    return time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--fill", action="store_true", help="write every key once, and end")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    if args.fill:
        fill(args, rng)
    else:
        print(f"{run(args, rng):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
