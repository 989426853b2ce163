#!/usr/bin/env python3
"""Does the what-if page say what `lodger` says? Asked in a real browser, without a network.

    what_if_test.py [--page out/what-if.html] [--lodger target/release/lodger] [--photos FOLDER]

Chromium is left out, and said to be, where it is not installed (exit 0); --need-browser makes that an error.
Exit 1 if a number differs, 2 if something is missing.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# For a machine that is busy with other things; the page answers in a second.
WAIT_S = 120

# Links, by what is special about them.
STATES = {
    "default": "",
    "working set": "#drive=rc100-480&span=16GiB&hmb=38MiB&depth=32&reads=100&check=none&map=built&over=hmb",
    "mixed, tags": "#drive=bg4&span=24GiB&hmb=64MiB&depth=8&reads=70&check=mac&map=built&over=hmb",
    "large host memory": "#drive=m730&span=64GiB&hmb=480MiB&depth=64&reads=100&check=crc&over=depth",
    "writes": "#drive=ex900&span=8GiB&hmb=32MiB&depth=16&reads=0&over=span",
    "another memory": "#drive=970-pro&span=32GiB&hmb=64MiB&map=hmb",
    "over CXL": "#drive=rc100-480&span=32GiB&map=cxl&over=span",
    "phone": "#drive=galaxy-s7&span=8GiB&depth=32&reads=50&over=span",
    "buffer": "#drive=hong-hmb-buffer&span=4GiB&reads=50&hmb=64MiB&depth=4",
    "byte window": "#drive=2b-ssd&span=4GiB&reads=90&over=depth",
    "nonsense": "#drive=nothing&span=-1&hmb=1e99GiB&depth=x&reads=%00&check=<b>&map=../..&over=constructor",
}


class Browser:
    """Chromium's own protocol over two pipes: messages are JSON, each ended by a zero byte."""

    def __init__(self, program, folder, hosts="MAP * ~NOTFOUND"):
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()
        # The browser expects to read from descriptor 3 and to write to 4.
        run = f'exec 3<&{from_us} 4>&{to_us}; exec "$@"'
        options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-extensions", f"--host-resolver-rules={hosts}", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", run, "bash", program, *options], pass_fds=(from_us, to_us),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.out, self.incoming = os.fdopen(to_browser, "wb"), os.fdopen(from_browser, "rb")
        self.number, self.rest, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        self.out.flush()
        while True:
            heard = self.hear()
            if heard.get("id") == self.number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                return heard["result"]
            self.events.append(heard)

    def hear(self):
        while b"\0" not in self.rest:
            more = os.read(self.incoming.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + WAIT_S
        while not self.value(expression):
            if time.monotonic() > until:
                raise RuntimeError(f"waited {WAIT_S} s for {expression}; the page says: {self.value('document.body.innerText.slice(0, 500)')}")
            time.sleep(0.05)

    def open(self, address):
        # A link of another page first: a change of the fragment alone would load nothing.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def printed(lodger, command, more):
    """What a command of the page prints, as JSON."""
    words = command.replace("lodger ", f"{lodger} ", 1).replace(" <<'JOB'", f" {more} --output-format json <<'JOB'", 1)
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=WAIT_S)
    if done.returncode:
        raise RuntimeError(f"{words}\nexit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def without_clock(report):
    """The report without the only value that differs between equal runs."""
    report = json.loads(json.dumps(report))
    del report["lodger"]["wall_s"]
    return report


def differences(ours, theirs, at="report"):
    if isinstance(ours, dict) and isinstance(theirs, dict) and list(ours) == list(theirs):
        return [d for key in ours for d in differences(ours[key], theirs[key], f"{at}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [d for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) for d in differences(a, b, f"{at}[{i}]")]
    return [] if ours == theirs else [f"{at}: {ours!r} in the page, {theirs!r} from lodger"]


class Checks:
    def __init__(self):
        self.failed = 0

    def say(self, name, wrong):
        print(f"{'FAILED' if wrong else 'ok':7}{name}", flush=True)
        for line in wrong[:8]:
            print(f"       {line}")
        self.failed += bool(wrong)


def parts_add_up(measured, job):
    """The parts of requests' time that are drawn are those of the job whose latency is shown."""
    wrong = []
    for name in ("read", "write"):
        parts, latency = measured["breakdown"][name]["mean"], job[name]["lat_ns"]
        if parts["requests"] != latency["N"] or abs(sum(parts["parts_ns"].values()) - latency["mean"]) > 1.5:
            wrong.append(f"{name}: {parts['requests']} requests of {sum(parts['parts_ns'].values())} ns, but {latency['N']} of {latency['mean']}")
    return wrong


def same_as_command(browser, lodger, page, checks):
    """Report by report, every number of the page is that of its command."""
    for name, link in STATES.items():
        browser.open(page + link)
        browser.wait("document.documentElement.dataset.settled")
        says = browser.value("document.getElementById('says').textContent")
        if browser.value("document.documentElement.dataset.settled") == "wrong":
            checks.say(name, [f"the page says: {says}", browser.value("document.querySelector('.results .partial')?.textContent")])
            continue
        ours = browser.value("window.whatIf.report")
        command = browser.value("document.getElementById('command').textContent")
        wrong = differences(without_clock(ours), without_clock(printed(lodger, command, "")))
        wrong += parts_add_up(browser.value("window.whatIf.measured"), ours["jobs"][-1])
        # What would go unnoticed if nothing were compared: another seed is another run.
        other = printed(lodger, command, "").copy(), printed(lodger, command.replace("--seed 1", "--seed 2"), "")
        if not differences(without_clock(other[0]), without_clock(other[1])):
            wrong.append("null: another seed gives the same report")
        points = browser.value("window.whatIf.points.map(({at, iops}) => ({at, iops}))")
        key = browser.value("window.whatIf.state.over")
        if key == "hmb":
            for point in (points[0], points[-1]):
                word = f"--hmb {int(point['at'])}B"
                cap = command.replace(f"--hmb {command.split('--hmb ')[1].split()[0]}", word)
                theirs = printed(lodger, cap, "")
                job = theirs["jobs"][-1]
                wrong += differences(point["iops"], job["read"]["iops"] + job["write"]["iops"], word)
        if browser.value("window.whatIf.state.reads") < 100:
            browser.wait("document.documentElement.dataset.collected")
            longer = browser.value("document.getElementById('strip-command').textContent")
            wrong += differences(without_clock(browser.value("window.whatIf.collection.report")), without_clock(printed(lodger, longer, "")), "collection")
        checks.say(f"{name}: {says[:110]}", wrong)


def steps_hold(browser, page, checks):
    """Each step shows what its text says."""
    browser.open(page)
    browser.wait("document.documentElement.dataset.settled")
    print(f"       the first curve stood after {browser.value('window.whatIf.firstCurve') / 1e3:.2f} s")
    for at in range(browser.value("STEPS.length")):
        browser.value(f"document.querySelectorAll('#step-list button')[{at}].click()")
        browser.wait("document.documentElement.dataset.settled === toLink(state)")
        title, gain = browser.value(f"STEPS[{at}].title"), browser.value(f"STEPS[{at}].gain")
        rates = browser.value("whatIf.points.map((point) => point.iops)")
        ratio = max(rates) / rates[0]
        wrong = [f"{ratio:.2f} times is not within {gain}"] if gain and not gain[0] <= ratio <= gain[1] else []
        checks.say(f"step {at + 1}, {title}: {ratio:.2f} times", wrong)


def every_drive_answers(browser, page, checks):
    """Whatever drive is chosen, with what it is compared to, there is an answer."""
    browser.open(page)
    browser.wait("document.documentElement.dataset.settled")
    wrong, slowest = [], (0, "")
    for name in browser.value("drives.map((drive) => drive.name)"):
        begun = time.monotonic()
        browser.value(f"choose({{ ...DEFAULTS, drive: '{name}', reads: 70 }})")
        browser.wait("document.documentElement.dataset.settled === 'wrong' || document.documentElement.dataset.collected === toLink(state)")
        slowest = max(slowest, (time.monotonic() - begun, name))
        if browser.value("document.documentElement.dataset.settled") == "wrong" or browser.value("document.querySelectorAll('#curve svg, #strip svg').length") != 3:
            wrong.append(f"{name}: {browser.value('document.getElementById(`says`).textContent')}")
    checks.say(f"every drive answers; with garbage collection the slowest, {slowest[1]}, after {slowest[0]:.1f} s", wrong)


def trace_and_traps(browser, lodger, page, checks, folder):
    """A pasted trace is advised on as by the command; nonsense gets an error and no trap."""
    browser.open(page)
    browser.wait("document.documentElement.dataset.settled")
    browser.value("document.getElementById('trace-example').click()")
    browser.wait("document.documentElement.dataset.advised")
    ours = browser.value("window.whatIf.advice")
    if not ours:
        return checks.say("a trace", [browser.value("document.getElementById('trace-says').textContent")])
    (folder / "example.csv").write_text(browser.value("document.getElementById('trace-text').value"))
    command = browser.value("document.getElementById('trace-command').textContent")
    words = command.replace("lodger ", f"{lodger} ", 1) + " --output-format json"
    done = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, timeout=WAIT_S)
    if done.returncode not in (0, 1) or not done.stdout:
        checks.say("a trace", [f"{words}: exit {done.returncode}: {done.stderr}"])
    else:
        checks.say(f"a trace: {ours['answer']['text'][:110]}", differences(ours, json.loads(done.stdout), "advice"))
    wrong = []
    for text in ("", "\\0\\0\\0", "R,W", "time_s,op,offset_bytes,length_bytes\\n9e999,R,18446744073709551615,18446744073709551615", "x".join("[" * 5000)):
        browser.value(f"document.getElementById('trace-text').value = '{text}'; delete document.documentElement.dataset.advised; document.getElementById('trace-ask').click()")
        browser.wait("document.documentElement.dataset.advised")
        says = browser.value("document.getElementById('trace-says').textContent")
        if "stopped" in says or not says:
            wrong.append(f"{text[:20]!r}: {says}")
    for question in ('', '{', '[' * 200, '{"ask":"run"}', '{"ask":"draw","title":"","says":"","axes":["a","b"]}',
                     '{"ask":"run","setup":{"drive":"/etc/passwd"},"job":""}',
                     '{"ask":"run","setup":{"drive":"tiny"},"job":"[a]\\nrw=randread\\nbs=4k\\nnumber_ios=99999999999\\nsize=1g\\ntime_based\\nruntime=99d"}',
                     '{"ask":"run","setup":{"drive":"tiny"},"job":"[a]\\ninclude /etc/passwd"}'):
        answer = browser.value(f"ask(lodger.here, {json.dumps(question)})")
        if '"error"' not in answer:
            wrong.append(f"{question[:60]}: {answer[:80]}")
    checks.say("wrong input gets an error, and no trap", wrong)


def by_keyboard(browser, page, checks):
    """Controls have names, and follow the arrow keys."""
    browser.open(page)
    browser.wait("document.documentElement.dataset.settled")
    unnamed = browser.value("[...document.querySelectorAll('input,select,textarea,button')].filter((e) => !(e.labels && e.labels.length) && !e.textContent && !e.ariaLabel).map((e) => e.outerHTML)")
    before = browser.value("document.getElementById('hmb').focus(); state.hmb")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    browser.wait("document.documentElement.dataset.settled === toLink(state)")
    after, link = browser.value("state.hmb"), browser.value("location.hash")
    wrong = [f"without a name: {e[:80]}" for e in unnamed]
    if after <= before or "hmb=" not in link:
        wrong.append(f"an arrow key moves host memory from {before} to {after}, link {link}")
    said = browser.value("document.getElementById('hmb').getAttribute('aria-valuetext')")
    if "MiB" not in said:
        wrong.append(f"host memory is read out as {said}")
    checks.say(f"keyboard: one step to {said}; every control has a name", wrong)


def without_scripts(browser, page, checks):
    browser.open(page)
    browser.wait("document.documentElement.dataset.settled")
    # The page begins with the answer to what it asks first, made by the same simulator.
    live = browser.value("Object.fromEntries(whatIf.points.map(({at, iops}) => [at / MIB, Math.round(iops)]))")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Page.navigate", url=page)
    time.sleep(1)
    root = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    html = browser.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    body = html.split("</style>")[-1]
    wrong = [f"no {text!r}" for text in ("need JavaScript", "<svg", "times as many", f">{live['32']}") if text not in body]
    checks.say("without JavaScript: a sentence, a curve and a table, with the same values", wrong)


def quiet(browser, checks):
    """No request leaves the page, and nothing is complained about."""
    wrong = []
    for event in browser.events:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "blob:", "about:")):
            wrong.append(f"asks the network for {params['request']['url']}")
        if event.get("method") == "Runtime.exceptionThrown":
            wrong.append(f"exception: {json.dumps(params)[:300]}")
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            wrong.append(f"console: {params['entry']['text']}")
    checks.say("no network, no exception", wrong)


def photograph(browser, page, folder):
    import base64
    folder.mkdir(parents=True, exist_ok=True)
    for name, link in (("start", STATES["working set"]), ("mixed", STATES["mixed, tags"])):
        for width in (1400, 400):
            for scheme in ("light", "dark"):
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                browser.open(page + link)
                browser.wait("document.documentElement.dataset.settled")
                if "reads=100" not in link:
                    browser.wait("document.documentElement.dataset.collected")
                browser.value("document.getElementById('trace-example').click()")
                browser.wait("document.documentElement.dataset.advised")
                wide = browser.value("document.documentElement.scrollWidth")
                shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
                path = folder / f"{name}-{width}-{scheme}.png"
                path.write_bytes(base64.b64decode(shot))
                print(f"       {path}: {wide} px wide")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", default="out/what-if.html")
    parser.add_argument("--lodger", default="target/release/lodger")
    parser.add_argument("--photos", help="write pictures of the page into this folder, and check nothing")
    parser.add_argument("--need-browser", action="store_true", help="it is an error if no browser is there")
    args = parser.parse_args()
    for needed, make in ((args.page, "make page"), (args.lodger, "cargo build --release -p lodger")):
        if not pathlib.Path(needed).exists():
            print(f"error: there is no `{needed}`\nhint: `{make}` makes it", file=sys.stderr)
            return 2
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        print(f"LEFT OUT: the what-if page was not tested, as no browser is installed ({', '.join(BROWSERS)})", file=sys.stderr)
        return 2 if args.need_browser else 0
    page = pathlib.Path(args.page).resolve().as_uri()
    lodger = pathlib.Path(args.lodger).resolve()
    checks = Checks()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            if args.photos:
                photograph(browser, page, pathlib.Path(args.photos))
                return 0
            size = pathlib.Path(args.page).stat().st_size
            checks.say(f"{size / 1e6:.2f} MB", ["3 MB is the most"] if size > 3_000_000 else [])
            same_as_command(browser, lodger, page, checks)
            steps_hold(browser, page, checks)
            every_drive_answers(browser, page, checks)
            trace_and_traps(browser, lodger, page, checks, pathlib.Path(folder))
            by_keyboard(browser, page, checks)
            quiet(browser, checks)
            without_scripts(browser, page, checks)
        except RuntimeError as error:
            checks.say("the page", [str(error)[:1000]])
        finally:
            browser.close()
    print(f"{checks.failed} failed" if checks.failed else "all is as it should be")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
