"""A drive on a socket, and a virtual machine with the drive attached."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import initramfs
import packages

# The first QEMU with the device vfio-user-pci.
VERSION_MIN = (10, 1)
MEMORY = "1G"
CPUS = 2
# Does not wait for hardware that is not there, nor check what is not asked.
APPEND = (
    "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable no_timer_check apparmor=0 selinux=0 "
    "cryptomgr.notests nowatchdog"
)
START_SECONDS = 20
TRIAL_SECONDS = 15
END_SECONDS = 10


def end(process: subprocess.Popen):
    """Ends a process that was started here."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Qemu:
    """A QEMU that knows vfio-user."""

    def __init__(self, words: list[str], environment: dict[str, str]):
        self.words = words
        self.environment = {**os.environ, **environment}
        self.accelerator = "tcg,tb-size=512"

    def version(self) -> tuple[int, int]:
        said = subprocess.run(
            [*self.words, "--version"],
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        ).stdout
        found = re.search(r"version (\d+)\.(\d+)", said)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def command(self, kernel: Path, archive: Path, append: str, memory: str) -> list[str]:
        """Of a machine without any devices but those that are added."""
        return [
            *self.words,
            *("-accel", self.accelerator, "-cpu", "max" if "tcg" in self.accelerator else "host"),
            *(
                "-smp",
                str(CPUS),
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ),
            *("-machine", "q35,memory-backend=mem", "-m", memory),
            *("-object", f"memory-backend-memfd,id=mem,size={memory},share=on"),
            *("-kernel", str(kernel), "-initrd", str(archive), "-bios", "qboot.rom"),
            *("-append", f"{APPEND} {append}"),
        ]


def device(socket: Path) -> list[str]:
    """Attaches the drive that waits at a socket."""
    told = {"driver": "vfio-user-pci", "socket": {"type": "unix", "path": str(socket)}}
    return ["-device", json.dumps(told)]


def find_qemu(tree: initramfs.Tree) -> Qemu:
    """The machine's own, if it is new enough; else that of the packages."""
    own = shutil.which("qemu-system-x86_64")
    if own:
        qemu = Qemu([own], {})
        if qemu.version() >= VERSION_MIN:
            return qemu
    program = tree.root / "usr/bin/qemu-system-x86_64"
    data = [tree.root / "usr/share" / name for name in ("qemu", "seabios", "qboot")]
    words = [*tree.command(program), *(word for path in data for word in ("-L", str(path)))]
    modules = tree.root / "usr/lib/x86_64-linux-gnu/qemu"
    qemu = Qemu(words, {**tree.environment, "QEMU_MODULE_DIR": str(modules)})
    if qemu.version() < VERSION_MIN:
        raise packages.Missing(f"QEMU {VERSION_MIN[0]}.{VERSION_MIN[1]} or newer")
    return qemu


def choose_accelerator(qemu: Qemu, kernel: Path, archive: Path):
    """KVM if a guest comes up with it. That it is there says little: some hosts offer one that
    boots nothing."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return
    slow, qemu.accelerator = qemu.accelerator, "kvm"
    words = [
        *qemu.command(kernel, archive, "live=none", MEMORY),
        "-serial",
        "null",
        "-serial",
        "stdio",
    ]
    try:
        said = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=qemu.environment,
            timeout=TRIAL_SECONDS,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired:
        said = ""
    if "done" not in said:
        qemu.accelerator = slow


class Drive:
    """`lodger serve` with its socket."""

    def __init__(self, lodger: Path, folder: Path, drive: str, *options: str):
        self.lodger = lodger
        self.socket = folder / "drive"
        self.said = folder / "drive.log"
        words = [str(lodger), "serve", "--drive", drive, "--socket", str(self.socket), *options]
        self.words = words
        self.start()

    def start(self):
        """Serves it, from where it was left if a file keeps it."""
        with self.said.open("a") as said:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
        until = time.monotonic() + START_SECONDS
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                self.end()
                raise RuntimeError(f"the drive is not served: {self.said.read_text().strip()}")
            time.sleep(0.02)

    def cpu_seconds(self) -> float:
        """Time of processors that it has taken."""
        # User and system time are fields 14 and 15, the 12th and 13th behind the name in brackets,
        # which may have spaces (proc(5)).
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cut_power(self):
        """Power fails and comes back."""
        words = [str(self.lodger), "ctl", str(self.socket), "power-cut"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=END_SECONDS)

    def kill(self):
        """The server is gone as by a crash; another begins."""
        self.process.kill()
        self.process.wait()
        self.socket.unlink()
        self.start()

    def end(self):
        end(self.process)


class Guest:
    """A virtual machine that says on its second serial port what becomes of its work."""

    def __init__(
        self,
        qemu: Qemu,
        kernel: Path,
        archive: Path,
        folder: Path,
        drive: Drive,
        append: str,
        beside: tuple[str, ...] = (),
    ):
        self.console = folder / "console.log"
        self.results = folder / "results.log"
        self.results.write_text("")
        words = qemu.command(kernel, archive, append, MEMORY)
        words += ["-serial", f"file:{self.console}", "-serial", f"file:{self.results}"]
        words += [*device(drive.socket), *beside]
        self.errors = folder / "qemu.log"
        with self.errors.open("a") as errors:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=subprocess.STDOUT,
                env=qemu.environment,
            )
        self.taken = 0

    def line(self, seconds: float) -> str | None:
        """What it says next; none if it is gone, or the time is over."""
        until = time.monotonic() + seconds
        while True:
            is_over = self.process.poll() is not None
            said = self.results.read_text(errors="replace")[self.taken :]
            line, end_of_line, _ = said.partition("\n")
            if end_of_line:
                self.taken += len(line) + 1
                return line.strip("\r")
            if is_over or time.monotonic() > until:
                return None
            time.sleep(0.05)

    def end(self):
        end(self.process)

    def wait(self):
        """It powers off by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
