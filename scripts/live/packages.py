"""QEMU, kernels and the programs of a guest, from the packages of this machine's distribution.

They are taken from the mirror that the machine itself uses, checked against its keys, and unpacked
into a cache folder, without root and without touching what is installed. apt has a folder of its
own there, with an empty list of installed packages, so it finds all libraries a program needs.
"""

import fcntl
import os
import shutil
import subprocess
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

# The suite whose QEMU is new enough, and which has the newest kernel.
NEWEST = "sid"
TOOLS = [
    "qemu-system-x86",
    "busybox-static",
    "fio",
    "nvme-cli",
    "e2fsprogs",
    "xfsprogs",
    "sqlite3",
    "redis-server",
]
# Kernels by what --kernel calls them: the suite and the package that have them. Those for machines in a cloud are small and have the
# driver built in; the ordinary one can suspend and has it as a module.
KERNELS = {
    "newest": (NEWEST, "linux-image-cloud-amd64"),
    "6.12": ("trixie", "linux-image-cloud-amd64"),
    "6.1": ("bookworm", "linux-image-cloud-amd64"),
    "ordinary": ("trixie", "linux-image-amd64"),
}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
UPDATE_SECONDS = 120
DOWNLOAD_SECONDS = 600


# When fetching has to be over (time.monotonic), if it has.
deadline = float("inf")


class Missing(Exception):
    """Something cannot be had on this machine."""


def cache() -> Path:
    """Where what was fetched is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lodger" / "vm"


@dataclass(frozen=True)
class Mirror:
    """Where this machine gets its own packages."""

    uri: str
    keyring: Path


def release() -> dict[str, str]:
    """What the machine says it is."""
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def listed_sources():
    """(uri, suites, keyring or None) of each source of packages that apt knows."""
    folder = Path("/etc/apt")
    for path in [folder / "sources.list", *folder.glob("sources.list.d/*.list")]:
        for line in path.read_text().splitlines() if path.exists() else []:
            words = line.split("#")[0].split()
            options = []
            while len(words) > 1 and (
                words[1].startswith("[") or (options and "]" not in options[-1])
            ):
                options.append(words.pop(1))
            signed = [o.strip("[]").split("=", 1)[1] for o in options if "signed-by=" in o]
            if len(words) >= 3 and words[0] == "deb":
                yield words[1], [words[2]], signed[0] if signed else None
    for path in folder.glob("sources.list.d/*.sources"):
        for stanza in path.read_text().split("\n\n"):
            lines = (line for line in stanza.splitlines() if not line.startswith("#"))
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
            fields = {key.strip().lower(): value.split() for key, value in fields.items()}
            if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"]) != ["no"]:
                for uri in fields.get("uris", []):
                    yield uri, fields.get("suites", []), (fields.get("signed-by") or [None])[0]


def mirror() -> Mirror:
    """The mirror of the distribution itself, not one of the others that may be listed beside it."""
    said = release()
    if said.get("ID") != "debian":
        raise Missing("packages: this machine is not Debian")
    for program in ("apt-get", "dpkg-deb"):
        if not shutil.which(program):
            raise Missing(f"packages: no {program}")
    own = {said.get("VERSION_CODENAME", NEWEST), "stable", "testing", "unstable", "sid"}
    for uri, suites, keyring in listed_sources():
        if own & set(suites):
            path = Path(keyring) if keyring and keyring.startswith("/") else KEYRING
            return Mirror(uri, path)
    raise Missing("packages: no mirror of Debian among this machine's sources")


class Suite:
    """The packages of one suite."""

    def __init__(self, name: str, log):
        self.name = name
        self.log = log
        self.folder = cache() / "apt" / name
        source = mirror()
        for part in ("lists/partial", "cache/archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        (self.folder / "empty").mkdir(exist_ok=True)
        listed = f"deb [signed-by={source.keyring}] {source.uri} {name} main\n"
        (self.folder / "sources.list").write_text(listed)
        self.is_updated = False

    def run(self, program: str, *words: str, seconds: float, cwd: Path | None = None) -> str:
        options = {
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": self.folder / "empty",
            "Dir::Etc::preferencesparts": self.folder / "empty",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "APT::Update::Error-Mode": "any",
            "APT::Update::Post-Invoke::": "true",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "20",
        }
        said = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        seconds = min(seconds, max(deadline - time.monotonic(), 1))
        try:
            done = subprocess.run(
                [program, "-q", *said, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                cwd=cwd,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Missing(f"packages of {self.name}: no answer in {seconds:.0f} s") from None
        if done.returncode != 0:
            wrong = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise Missing(f"packages of {self.name}: {(wrong or ['apt-get failed'])[-1]}")
        return done.stdout

    def update(self):
        if not self.is_updated:
            self.log(f"fetching the list of packages of {self.name}")
            self.run("apt-get", "update", seconds=UPDATE_SECONDS)
            self.is_updated = True

    def with_libraries(self, names: list[str]) -> list[Path]:
        """Fetches packages with all they need."""
        self.update()
        self.log(f"fetching {', '.join(names)}")
        archives = self.folder / "cache" / "archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        words = ("install", "-y", "--download-only", *names)
        self.run("apt-get", *words, seconds=DOWNLOAD_SECONDS)
        return sorted(archives.glob("*.deb"))

    def kernel(self, package: str) -> list[Path]:
        """Fetches the newest kernel that a package stands for, without what it recommends for an installation."""
        self.update()
        words = ("depends", "--important", package)
        said = self.run("apt-cache", *words, seconds=60)
        names = [
            line.split("Depends:")[1].strip() for line in said.splitlines() if "Depends:" in line
        ]
        names = [name for name in names if name.startswith("linux-image-")]
        if not names:
            raise Missing(f"packages of {self.name}: no kernel")
        self.log(f"fetching {names[0]}")
        folder = self.folder / "kernel"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        # The image, and in newer suites its modules in a package of their own.
        said = self.run("apt-cache", "depends", "--important", names[0], seconds=60)
        words = [
            line.split("Depends:")[1].strip() for line in said.splitlines() if "Depends:" in line
        ]
        parts = [word for word in words if word.startswith(("linux-modules-", "linux-binary-"))]
        self.run("apt-get", "download", names[0], *parts, seconds=DOWNLOAD_SECONDS, cwd=folder)
        return sorted(folder.glob("*.deb"))


def unpacked(name: str, fetch) -> Path:
    """The tree of that name in the cache: what `fetch` brings, unpacked, if it is not there yet."""
    tree = cache() / name
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / "lock", "w") as lock:
        # Two test runs fetch in turn.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tree.is_dir():
            return tree
        fresh = cache() / f"{name}.partial"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        packages = fetch()
        for package in packages:
            subprocess.run(["dpkg-deb", "-x", str(package), str(fresh)], check=True)
            package.unlink()
        fresh.rename(tree)
    return tree


def tools(log) -> Path:
    """QEMU and the guest's programs, with their libraries: a tree for each list of them."""
    name = f"tools-{zlib.crc32(' '.join(TOOLS).encode()):08x}"
    return unpacked(name, lambda: Suite(NEWEST, log).with_libraries(TOOLS))


def kernel(name: str, log) -> Path:
    """A kernel with its modules."""
    suite, package = KERNELS[name]
    return unpacked(f"kernel-{name}", lambda: Suite(suite, log).kernel(package))
