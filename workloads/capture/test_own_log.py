"""Does a file of distributions say what the transactions were?"""

import argparse
import contextlib
import io
import pathlib
import tempfile
import tomllib
import unittest

import own_log

OPTIONS = argparse.Namespace(write_call_ns=1, sync_call_ns=2, group_bytes=3, journalled=1.0)


def made(text):
    return tomllib.loads(own_log.toml(own_log.read(text.splitlines(), "t.csv"), OPTIONS))


class OwnLog(unittest.TestCase):
    def test_shares_times_and_sizes(self):
        found = made("operation,cpu_ns,log_bytes\nput,10,100\nput,30,200\nget,5,0\nput,20,100\n")
        self.assertEqual(found["log"]["journal_commit_bytes"], [[4096, 1]])
        put, get = found["operation"]
        self.assertEqual((put["name"], put["share"], put["cpu_ns"]), ("put", 75.0, 20))
        self.assertEqual(put["log_bytes"], [[100, 2], [200, 1]])
        self.assertEqual((get["share"], "log_bytes" in get), (25.0, False))

    def test_a_kind_that_logs_at_times_is_two(self):
        found = made('operation,cpu_ns,log_bytes\n"a ""b""",7,0\n"a ""b""",7,9\n')
        self.assertEqual([one["name"] for one in found["operation"]], ['a "b"', 'a "b" (logs)'])

    def test_many_sizes_keep_their_number_and_nearly_their_sum(self):
        rows = "\n".join(f"x,1,{size}" for size in range(1, 1001))
        (one,) = made(f"operation,cpu_ns,log_bytes\n{rows}\n")["operation"]
        self.assertLessEqual(len(one["log_bytes"]), own_log.BINS_MAX)
        self.assertEqual(sum(count for _, count in one["log_bytes"]), 1000)
        self.assertAlmostEqual(sum(size * count for size, count in one["log_bytes"]) / 500_500, 1.0, 2)

    def test_a_file_as_spreadsheets_save_it_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "t.csv")
            table.write_bytes("\ufeffoperation,cpu_ns,log_bytes\r\nput,10,100\r\n".encode())
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(own_log.main([str(table)]), 0)
            self.assertEqual(tomllib.loads(printed.getvalue())["operation"][0]["name"], "put")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(own_log.main([folder + "/none.csv"]), 2)
            self.assertIn("cannot read", said.getvalue())

    def test_what_is_wrong_is_told_with_its_line(self):
        for text in ("operation,cpu_ns\na,1\n", "operation,cpu_ns,log_bytes\na,x,1\n", "operation,cpu_ns,log_bytes\n"):
            with self.assertRaisesRegex(own_log.BadInput, "t.csv"):
                made(text)


if __name__ == "__main__":
    unittest.main()
