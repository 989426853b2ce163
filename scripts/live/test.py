#!/usr/bin/env python3
"""Linux with its own driver, in QEMU, on a drive of `lodger serve`: does what users do work?

One line a check, then `N passed, N failed`. Ends with 1 if any failed or could not be made (see
--allow-missing).
"""

import argparse
import shlex
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import initramfs
import packages
import vm

HERE = Path(__file__).resolve().parent
BOOT_SECONDS = 60
# The kernel that makes all checks.
NEWEST = "newest"
# The one that can suspend, and has the driver as a module.
ORDINARY = "ordinary"
# Share of a core that a drive may take to which nobody comes, by the check in which nobody does.
IDLE = ("idle", 0.01)


@dataclass(frozen=True)
class Boot:
    """One start of a guest, and what it checks."""

    name: str
    checks: tuple[str, ...]
    # On the kernel's command line.
    append: str = ""
    # The machine ends as by a power cut when its checks are done, and the drive stays for the next.
    is_cut: bool = False
    # The drive's power fails then, too.
    is_drive_cut: bool = False
    # Its server is killed then, and another begins.
    is_drive_killed: bool = False
    # More devices of the machine, as QEMU takes them.
    beside: tuple[str, ...] = ()
    # Longest time for each of its checks, where it is not that of all.
    seconds: int | None = None


def boot(name: str, checks: str, **other) -> Boot:
    """With the names of the checks in one text."""
    return Boot(name, tuple(checks.split()), **other)


COMMANDS = boot(
    "commands",
    "attached host_memory health errors flush deallocate write_zeroes compare reset abort"
    " power_states saved_features host_memory_rules format sanitize idle",
)
DATA = boot(
    "data",
    "random_mix trim_mix ext4 xfs reset_under_load host_memory_under_load unbind remove",
)
CUT = boot("cut", "write_before_cut", is_cut=True)
AFTER_CUT = boot("after the cut", "read_after_cut random_mix")
WITHOUT = boot(
    "without host memory", "no_host_memory random_mix", append="nvme.max_host_mem_size_mb=0"
)
# With `iomem=relaxed` a program may map the window while the driver is bound.
CUT_ON_WINDOW = {"append": "iomem=relaxed", "is_cut": True}
ON_WINDOW = {**CUT_ON_WINDOW, "is_drive_cut": True}
WINDOW = [
    boot("window", "window_latency window_commits", **ON_WINDOW),
    *2 * [boot("window after a power cut", "window_kept window_commits", **ON_WINDOW)],
    boot("window after power cuts", "window_kept", append="iomem=relaxed"),
]
KILLED_ON_WINDOW = {**CUT_ON_WINDOW, "is_drive_killed": True}
WINDOW_KILLED = [
    boot("window in a file", "window_latency window_commits", **KILLED_ON_WINDOW),
    boot("window after its server was killed", "window_kept", append="iomem=relaxed"),
]
REDIS = [
    boot("Redis", "redis_latency redis_commits", **ON_WINDOW),
    *2 * [boot("Redis after a power cut", "redis_kept redis_commits", **ON_WINDOW)],
    boot("Redis after power cuts", "redis_kept", append="iomem=relaxed"),
]
WINDOW_FILE = [
    boot("files on the window", "window_file window_file_cut", **ON_WINDOW),
    boot("files on the window after a power cut", "window_file_kept", append="iomem=relaxed"),
]
# Each drive with the guests that follow each other on it.
PLANS = {
    "commands": [COMMANDS],
    "data": [DATA],
    "cut": [CUT, AFTER_CUT],
    "without": [WITHOUT],
    "namespaces": [boot("namespaces", "namespaces")],
    "manage_namespaces": [boot("namespaces of the host's", "manage_namespaces")],
    "window": WINDOW,
    "window_killed": WINDOW_KILLED,
    "redis": REDIS,
    "window_file": WINDOW_FILE,
    "window_c": [boot("window in C", "window_c", append="iomem=relaxed")],
}
# What needs the ordinary kernel.
SLEEP = boot("sleep", "module suspend_to_idle suspend_to_ram")
# What a kernel does that has not all of it to do.
ATTACH = boot(
    "attached",
    "attached host_memory health random_mix reset_under_load host_memory_under_load",
)
# A drive of QEMU's own whose reads take it nothing.
NULL = "driver=null-co,node-name=null,size=1073741824,read-zeroes=off"
NULL_DRIVE = ("-blockdev", NULL, "-device", "nvme,serial=null,drive=null")
# Drives whose roles, sizes and units `lodger probe` is to find from inside the guest.
PROBED = ["map", "whole_map", "read_cache", "nothing", "write_buffer"]
PROBES = {
    f"probe_{name}": [boot(f"probe of {name}", f"probe_{name}", seconds=900)] for name in PROBED
}
# What is measured, if it is asked for by name.
MEASURES = {
    "iops": [boot("iops", "iops", append="nvme.poll_queues=1", beside=NULL_DRIVE)],
    "knees": [boot("knees", "knees", append="LIVE_SLOWER=30 LIVE_DRIVE=rc100-240", seconds=1500)],
    **PROBES,
}
# Several by one name.
GROUPS = {"probe": list(PROBES)}
# Of the collection, or a file, where it is not the one that is asked for.
DRIVES = {
    **dict.fromkeys(["window", "window_killed", "redis", "window_file", "window_c"], "2b-ssd"),
    "knees": "rc100-240",
    **{f"probe_{name}": str(HERE / "drives" / f"{name}.toml") for name in PROBED},
}
# Slower than a drive is by 30, so that the times of flash stand out from those of an emulated guest.
SLOW = ["--speed", "0.033333", "--precondition", "sequential"]
# The same where more than single requests is looked at.
LESS_SLOW = ["--speed", "0.1", "--precondition", "sequential"]
# And more options of `lodger serve`.
OPTIONS = {
    "namespaces": ["--namespaces", "1GiB,2GiB,rest"],
    "manage_namespaces": ["--set", "controller.namespaces=8"],
    "window_c": ["--block", "4096"],
    "iops": ["--speed", "0"],
    **dict.fromkeys(["knees", *PROBES], SLOW),
    "probe_write_buffer": LESS_SLOW,
}
# Whose drive is in a file, which outlives its server.
KEPT = {"window_killed"}
# What some have of this repository in the guest, beside the program itself.
BUILT = {
    **dict.fromkeys(["window", "window_killed", "redis"], "liblodger_window_preload.so"),
    "window_file": "examples/pin_file",
    "window_c": "examples/window_in_c",
}
# What fits into a minute or two.
QUICK = boot(
    "quick",
    "attached host_memory health errors deallocate write_zeroes compare format sanitize"
    " power_states saved_features random_mix ext4 reset_under_load host_memory_under_load unbind",
)


class Run:
    """What became of the checks so far."""

    def __init__(self, options):
        self.options = options
        self.passed = 0
        self.failed = 0
        self.left_out: list[str] = []
        self.until = float("inf")
        # The last commit that a guest has said it had made.
        self.committed = 0

    def say(self, text: str):
        print(text, flush=True)

    def left(self) -> float:
        return max(self.until - time.monotonic(), 0)

    def judge(self, check: str, is_good: bool, text: str, seconds: float):
        self.passed += is_good
        self.failed += not is_good
        word = "ok    " if is_good else "FAILED"
        self.say(f"  {word} {check} ({seconds:.1f} s){text}")

    def boot(self, boot: Boot, machine, drive: vm.Drive, folder: Path):
        """One guest; every check that it does not answer for has failed."""
        wanted = [name for name in boot.checks if self.is_wanted(name)]
        if not wanted:
            return
        if self.left() <= 0:
            self.left_out.append(f"{boot.name}: the time is over\n  left out: {', '.join(wanted)}")
            return
        qemu, kernel, archive = machine
        append = f"live={','.join(wanted)} live.committed={self.committed} {boot.append}"
        if boot.seconds:
            # In the environment of the guest's first process.
            append += f" LIVE_SECONDS={boot.seconds}"
        guest = vm.Guest(qemu, kernel.image, archive, folder, drive, append, boot.beside)
        began, cpu = time.monotonic(), 0.0
        waiting = list(wanted)
        try:
            longest = max(boot.seconds or 0, self.options.check_seconds)
            while True:
                line = guest.line(min(longest if waiting else BOOT_SECONDS, self.left()))
                if line is None or line == "done":
                    break
                word, _, rest = line.partition(" ")
                if word == "kernel":
                    self.say(
                        f"{boot.name}: Linux {rest}, up after {time.monotonic() - began:.1f} s"
                    )
                elif word == "begin":
                    began, cpu = time.monotonic(), drive.cpu_seconds()
                elif word == "committed":
                    self.committed = int(rest)
                elif word in ("ok", "not") and waiting:
                    check = waiting.pop(0)
                    text, is_good = rest.partition(" - ")[2], word == "ok"
                    took = time.monotonic() - began
                    if check == IDLE[0]:
                        share = (drive.cpu_seconds() - cpu) / took
                        text += f"{100 * share:.2f} % of a core"
                        is_good = is_good and share < IDLE[1]
                    self.judge(check, is_good, f": {text}" if text else "", took)
                    if boot.is_cut and not waiting:
                        break
        finally:
            if boot.is_cut:
                guest.process.kill()
                guest.process.wait()
                # What it has said meanwhile counts.
                while line := guest.line(0):
                    if line.startswith("committed "):
                        self.committed = int(line.split()[1])
                if boot.is_drive_cut:
                    drive.cut_power()
                if boot.is_drive_killed:
                    drive.kill()
            elif not waiting:
                guest.wait()
            guest.end()
        if waiting and self.left() <= 0:
            # The time was too short for all of them: nothing is wrong with those that are left.
            self.left_out.append(f"{boot.name}: the time is over\n  left out: {', '.join(waiting)}")
            return
        for number, check in enumerate(waiting):
            why = "no answer" if number == 0 else "not begun"
            self.judge(check, False, f": {why}, see {guest.console}", time.monotonic() - began)
        if waiting:
            # Where the folder is gone with the machine, this is all that is left of it.
            for path in (guest.errors, guest.console, guest.results):
                lines = path.read_text(errors="replace").splitlines()[-8:]
                self.say("\n".join([f"  the end of {path.name}:", *(f"    {x}" for x in lines)]))

    def is_wanted(self, check: str) -> bool:
        return not self.options.checks or check in self.options.checks

    def plan(self, name: str, boots: list[Boot], machine, folder: Path):
        if not any(self.is_wanted(check) for boot in boots for check in boot.checks):
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.committed = 0
        of = DRIVES.get(name, self.options.drive)
        more = [*OPTIONS.get(name, []), *shlex.split(self.options.serve)]
        if name in KEPT and "--backing" not in more:
            for left in folder.glob("flash*"):
                left.unlink()
            more += ["--backing", str(folder / "flash")]
        drive = vm.Drive(self.options.lodger, folder, of, *more)
        try:
            for boot in boots:
                self.boot(boot, machine, drive, folder)
                is_alive = drive.process.poll() is None
                if not is_alive:
                    self.judge("the drive is still served", False, f": see {drive.said}", 0)
                    return
        finally:
            drive.end()
        said = drive.said.read_text().strip().splitlines()
        self.say(
            "  " + "\n  ".join(line for line in said if line.startswith(("clients", "completions")))
        )
        if drive.process.returncode != 0 or any("panicked" in line for line in said):
            self.judge("the drive ends well", False, f": see {drive.said}", 0)


def machine(kernel: str, folder: Path, options, log):
    """QEMU, a kernel and the guest's root."""
    tree = initramfs.Tree(packages.tools(log))
    found = initramfs.Kernel(packages.kernel(kernel, log))
    archive = folder / f"root-{kernel}.cpio"
    built = [options.lodger.parent / name for name in BUILT.values()]
    if set(options.checks) & {*PROBES, "knees"}:
        built.append(options.lodger)
    built = tuple(path for path in built if path.is_file())
    redis = {check for boot in REDIS for check in boot.checks}
    is_wanted = redis & set(options.checks) if options.checks else not options.quick
    more = tuple(initramfs.REDIS) if is_wanted else ()
    archive.write_bytes(initramfs.build(tree, found, HERE / "guest", built, more))
    qemu = vm.find_qemu(tree)
    if options.accelerator != "tcg":
        vm.choose_accelerator(qemu, found.image, archive)
    return qemu, found, archive


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lodger", type=Path, required=True, help="the program")
    parser.add_argument("--drive", default="rc100-240", help="of the collection, or a file")
    parser.add_argument("--serve", default="", help="options of `lodger serve`, in one word")
    words = "which kernel the guest has (the newest; without checks all do a part of it first)"
    parser.add_argument("--kernel", choices=[*packages.KERNELS, "all"], help=words)
    parser.add_argument("--quick", action="store_true", help="one guest, some checks")
    parser.add_argument("--accelerator", default="auto", choices=["auto", "tcg"])
    parser.add_argument("--check-seconds", default=260, type=int, help="longest time for a check")
    parser.add_argument("--seconds", default=900, type=int, help="longest time for all checks")
    parser.add_argument(
        "--fetch-seconds", default=900, type=int, help="longest time for fetching what is missing"
    )
    parser.add_argument("--keep", type=Path, help="folder for what drive, QEMU and guest have said")
    words = "what cannot be had here, such as QEMU, is left out by name and fails nothing"
    parser.add_argument("--allow-missing", action="store_true", help=words)
    parser.add_argument("checks", nargs="*", help="the checks to make (all)")
    return parser.parse_args()


def plans_by_kernel(options, plans: dict[str, list[Boot]]) -> dict[str, dict[str, list[Boot]]]:
    """What each kernel does, in order."""
    if options.quick:
        return {options.kernel or NEWEST: plans}
    sleep = {"sleep": [SLEEP]}
    full = {**dict.fromkeys(packages.KERNELS, plans), ORDINARY: {**plans, **sleep}}
    if options.kernel == "all":
        return full
    if options.kernel:
        return {options.kernel: full[options.kernel]}
    asked = set(options.checks)
    if asked:
        by_kernel = {NEWEST: plans} if asked - set(SLEEP.checks) else {}
        return {**by_kernel, ORDINARY: sleep} if asked & set(SLEEP.checks) else by_kernel
    others = [kernel for kernel in packages.KERNELS if kernel not in (NEWEST, ORDINARY)]
    attached = {kernel: {"attached": [ATTACH]} for kernel in others}
    return {**attached, ORDINARY: sleep, NEWEST: plans}


def main() -> int:
    # Not without ending drive and guest.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = arguments()
    options.checks = [name for check in options.checks for name in GROUPS.get(check, [check])]
    if not options.lodger.is_file():
        print(
            f"error: no `{options.lodger}`\nhint: `cargo build --release` makes it", file=sys.stderr
        )
        return 2
    packages.deadline = time.monotonic() + options.fetch_seconds
    run = Run(options)
    asked = {name: boots for name, boots in MEASURES.items() if name in options.checks}
    plans = {**({"quick": [QUICK]} if options.quick else PLANS), **asked}
    plans_of = plans_by_kernel(options, plans)
    plans_of_all = [boots for plans in plans_of.values() for boots in plans.values()]
    known = {check for boots in plans_of_all for boot in boots for check in boot.checks}
    for check in options.checks:
        if check not in known:
            known |= set(SLEEP.checks)
            hint = f"there are {', '.join(sorted(known))}"
            if check in known:
                hint = f"`--kernel {ORDINARY}` makes it"
            print(f"error: no check `{check}` with this kernel\nhint: {hint}", file=sys.stderr)
            return 2
    folder = options.keep or Path(tempfile.mkdtemp(prefix="lodger-"))
    folder.mkdir(parents=True, exist_ok=True)
    for kernel, plans in plans_of.items():
        try:
            ready = machine(kernel, folder, options, run.say)
        except packages.Missing as missing:
            checks = {check for boots in plans.values() for boot in boots for check in boot.checks}
            checks = sorted(check for check in checks if run.is_wanted(check))
            run.left_out.append(f"kernel {kernel}: {missing}\n  left out: {', '.join(checks)}")
            continue
        run.until = min(run.until, time.monotonic() + options.seconds)
        for name, boots in plans.items():
            built = options.lodger.parent / BUILT.get(name, "")
            if not built.exists():
                checks = {check for boot in boots for check in boot.checks if run.is_wanted(check)}
                if checks:
                    run.left_out.append(f"{built}\n  left out: {', '.join(sorted(checks))}")
                continue
            run.plan(name, boots, ready, folder / f"{kernel}-{name}")
    for text in run.left_out:
        run.say(f"left out: {text}")
    is_bad = run.failed or (run.left_out and not options.allow_missing)
    if not options.keep and not run.failed:
        shutil.rmtree(folder)
    run.say(f"{run.passed} passed, {run.failed} failed")
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
