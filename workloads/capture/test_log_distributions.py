"""Does the reader of captured logs count what is there?  python3 -m unittest, in this directory."""

import unittest

import log_distributions as log

TRACE = """\
# tracer: nop
  db-7  [000] ..... 10.000000: sys_write(fd: 8, buf: 0x55, count: 0x6d)
  db-7  [000] ..... 10.000002: sys_write -> 0x6d
  db-7  [000] ..... 10.000003: sys_write(fd: 3, buf: 0x55, count: 5)
  db-7  [000] ..... 10.000004: sys_write -> 0x5
  db-7  [000] ..... 10.000005: sys_fdatasync(fd: 8)
  db-7  [000] ..... 10.000006: block_rq_issue: 7,0 WS 4096 () 80 + 8 be,0,4 [db]
  soft-1  [001] ..s.. 10.000026: block_rq_complete: 7,0 WS () 80 + 8 be,0,4 [0]
  jbd2/loop0-8-9  [001] ..... 10.000030: block_rq_issue: 7,0 WSM 8192 () 900 + 16 be,0,3 [jbd2/loop0-8]
  soft-1  [001] ..s.. 10.000040: block_rq_complete: 7,0 WSM () 900 + 16 be,0,3 [0]
  kw/1-2  [001] ..... 10.000041: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kw/1]
  soft-1  [001] ..s.. 10.000051: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
  kw/1-2  [001] ..... 10.000052: block_rq_issue: 7,0 WSM 4096 () 916 + 8 be,0,3 [kw/1]
  soft-1  [001] ..s.. 10.000060: block_rq_complete: 7,0 WSM () 916 + 8 be,0,3 [0]
  db-7  [000] ..... 10.000065: sys_fdatasync -> 0x0
"""


class Trace(unittest.TestCase):
    def test_a_sync_is_the_log_file_s_and_the_journal_s(self):
        trace = log.TraceReader().read(TRACE.splitlines())
        (sync,) = trace.syncs
        self.assertEqual(sync.log_bytes, 0x6D, "the write to another file is not the log's")
        self.assertEqual((sync.data_bytes, sync.journal_writes), (4096, [8192, 4096]))
        self.assertEqual(sync.flushes, 1)
        self.assertEqual(sync.device_us, 20 + 10 + 10 + 8)
        self.assertEqual(sync.ended_us - sync.began_us, 60)
        self.assertEqual(trace.write_us, [2])

    def test_what_is_no_event_is_refused(self):
        with self.assertRaisesRegex(log.BadCapture, "line 1 is no ftrace event"):
            log.TraceReader().read(["nonsense"])


class Records(unittest.TestCase):
    def test_postgresql_sums_records_of_committed_transactions(self):
        line = "rmgr: {}        len (rec/tot):    {}/   {}, tx:      {}, lsn: 0/01, prev 0/00, desc: {}"
        records = log.waldump(
            [
                line.format("Heap", 107, 107, 7, "INSERT off 6"),
                line.format("Heap", 60, 8060, 8, "UPDATE off 6"),
                line.format("Transaction", 46, 46, 7, "COMMIT 2026-01-01"),
                line.format("Heap2", 60, 60, 0, "PRUNE"),
                line.format("Transaction", 34, 34, 8, "ABORT 2026-01-01"),
            ]
        )
        self.assertEqual(records.bytes, [112 + 48])
        self.assertEqual(records.image_bytes, 8000)
        self.assertEqual(records.other_bytes, 64 + 8064 + 40)

    def test_rocksdb_splits_a_group(self):
        records = log.rocksdb_wal(
            ["20001,1,102,0,PUT(0) : 0x00 ", "20002,3,282,109,PUT(0) : 0x01 PUT(0) : 0x02 "]
        )
        self.assertEqual(records.bytes, [90, 90, 90, 90])
        self.assertEqual(records.groups, {1: 1, 3: 1})

    def test_redis_has_a_command_each(self):
        one = b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
        self.assertEqual(log.append_only_file(one + one).bytes, [len(one)] * 2)
        with self.assertRaises(log.BadCapture):
            log.append_only_file(one + b"$")


class Bins(unittest.TestCase):
    def test_few_values_are_kept_and_many_keep_their_sum(self):
        self.assertEqual(log.bins([5, 5, 1]), [(1, 1), (5, 2)])
        values = [i * i for i in range(1000)]
        merged = log.bins(values)
        self.assertLessEqual(len(merged), log.BINS_MAX + 1)
        self.assertEqual(sum(count for _, count in merged), 1000)
        total = sum(value * count for value, count in merged)
        self.assertLess(abs(total - sum(values)), sum(values) / 1000)


if __name__ == "__main__":
    unittest.main()
