"""Tests of ftrace_summary.py: `python3 -m unittest` in this directory."""

import unittest

from ftrace_summary import BadTrace, Summary, summarise


def event(time_s: str, request: str, task: str = "postgres-6180") -> str:
    comm = task.rpartition("-")[0]
    return f"        {task}    [001] d..2.  {time_s}: block_rq_issue: 7,0 {request} be,0,4 [{comm}]\n"


def one(request: str) -> Summary:
    return summarise([event("1.000000", request)])


class Counts(unittest.TestCase):
    def test_operations_are_told_apart(self) -> None:
        summary = summarise([
            "# tracer: nop\n",
            event("10.000000", "RA 131072 () 0 + 256"),
            event("10.000001", "WSM 4096 () 8 + 8", task="jbd2/loop0-8-5844"),
            event("10.000001", "FF 0 () 0 + 0", task="kworker/0:1H-58"),
            event("12.500000", "DS 8192 () 512 + 16"),
        ])
        self.assertEqual(
            summary,
            Summary(
                events=4, reads=1, read_bytes=131072, writes=1, write_bytes=4096, flushes=1,
                discards=1, discard_bytes=8192, span_bytes=131072, touched_bytes=131072,
                duration_s=2.5, devices=["7,0"],
            ),
        )  # fmt: skip

    def test_leading_f_is_a_flush_and_trailing_f_is_fua(self) -> None:
        summary = one("FWFSM 4096 () 8 + 8")
        self.assertEqual((summary.writes, summary.flushes, summary.fua), (1, 1, 1))
        summary = one("WFS 4096 () 8 + 8")
        self.assertEqual((summary.writes, summary.flushes, summary.fua), (1, 0, 1))
        summary = one("FF 0 () 0 + 0")
        self.assertEqual((summary.writes, summary.flushes, summary.fua), (0, 1, 0))

    def test_writing_zeroes_is_neither_a_write_nor_lost(self) -> None:
        summary = one("NS 4096 () 8 + 8")
        self.assertEqual((summary.writes, summary.other), (0, 1))

    def test_kernels_without_priority(self) -> None:
        line = "  dd-1 [000] d..2. 1.000000: block_rq_issue: 8,0 R 4096 () 8 + 8 [dd]\n"
        self.assertEqual(summarise([line]).reads, 1)


class Refusals(unittest.TestCase):
    def refused(self, lines: list[str], why: str) -> None:
        with self.assertRaisesRegex(BadTrace, why):
            summarise(lines)

    def test_a_line_that_is_not_an_event(self) -> None:
        self.refused(["CPU:1 [LOST 3 EVENTS]\n"], "line 1: not a block_rq_issue event")

    def test_an_unknown_request_type(self) -> None:
        self.refused([event("1.0", "RQ 4096 () 8 + 8")], "unknown request type `RQ`")

    def test_time_that_goes_back(self) -> None:
        line = "FF 0 () 0 + 0"
        self.refused([event("2.000000", line), event("1.999999", line)], "line 2: time goes back")

    def test_bytes_that_are_not_the_sectors(self) -> None:
        self.refused([event("1.0", "R 4096 () 8 + 7")], "4096 bytes are not 7 sectors")

    def test_fewer_events_than_the_kernel_wrote(self) -> None:
        header = "# entries-in-buffer/entries-written: 2/2   #P:2\n"
        self.refused([header, event("1.0", "FF 0 () 0 + 0")], "wrote 2 events, 1 are here")


if __name__ == "__main__":
    unittest.main()
