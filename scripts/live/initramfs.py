"""The guest's root: programs with their libraries, the modules of a kernel, and scripts, as an
archive that the kernel unpacks (cpio, "newc"). Not compressed: a guest without hardware support
takes seconds to unpack it.
"""

import lzma
import os
import shutil
import subprocess
from pathlib import Path

import packages

# In the guest's /bin, from the tree of packages.
PROGRAMS = [
    "usr/bin/fio",
    "usr/sbin/nvme",
    "usr/sbin/mke2fs",
    "usr/sbin/e2fsck",
    "usr/sbin/mkfs.xfs",
    "usr/sbin/xfs_repair",
    "usr/bin/sqlite3",
]
# Large ones, for the checks that need them.
REDIS = ["usr/bin/redis-server", "usr/bin/redis-cli"]
# What file systems have that the oldest kernel can mount.
XFS_OPTIONS = "usr/share/xfsprogs/mkfs/lts_6.1.conf"
# Loaded with what they need, where they are not built in: at the start, and by the check that needs
# them (without hardware support, loading one of this size takes seconds).
MODULES = ["nvme", "ext4", "crc32c_generic"]
LATER = ["xfs"]
DIRECTORY, FILE, LINK, CHARACTERS = 0o040755, 0o100755, 0o120777, 0o020600


class Archive:
    """An archive that grows."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def add(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)):
        """Adds an entry, and the folders above it."""
        if name in self.names:
            return
        parent = name.rpartition("/")[0]
        if parent:
            self.add(parent, DIRECTORY)
        self.names.add(name)
        self.append(name, mode, content, device)

    def append(self, name: str, mode: int, content: bytes, device: tuple[int, int]):
        fields = [
            len(self.parts) + 1,
            mode,
            0,
            0,
            1,
            0,
            len(content),
            0,
            0,
            *device,
            len(name) + 1,
            0,
        ]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.parts.append(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))

    def bytes(self) -> bytes:
        self.append("TRAILER!!!", 0, b"", (0, 0))
        return b"".join(self.parts)


class Tree:
    """Packages unpacked, whose programs run with their own libraries."""

    def __init__(self, root: Path):
        self.root = root
        loaders = [root / part / "ld-linux-x86-64.so.2" for part in ("usr/lib64", "lib64")]
        # The path may be a link to one that is absolute, as it would be on a machine of its own.
        loaders += root.glob("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
        self.loader = next((path for path in loaders if path.is_file()), None)
        if not self.loader:
            raise packages.Missing(f"a loader of programs in {root}")
        folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
        found = [root / folder for folder in folders if (root / folder).is_dir()]
        found += [
            path for folder in found for path in folder.glob("*/") if list(path.glob("*.so.*"))
        ]
        # For all that is run of it, beside the environment there is.
        self.environment = {"LD_LIBRARY_PATH": ":".join(str(path) for path in found)}

    def command(self, program: Path) -> list[str]:
        """What runs one of its programs on this machine, in its environment."""
        return [str(self.loader), str(program)]

    def libraries(self, program: Path) -> list[Path]:
        """What a program is linked with."""
        words = self.command(program)
        words.insert(1, "--list")
        environment = {**os.environ, **self.environment}
        said = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        if said.returncode != 0:
            raise packages.Missing(f"libraries of {program.name}: {said.stderr.strip()}")
        paths = [
            line.split("=>")[1].split("(")[0].strip()
            for line in said.stdout.splitlines()
            if "=>" in line
        ]
        return [Path(path) for path in paths if path.startswith("/")]


class Kernel:
    """A kernel, and the modules that it has to load."""

    def __init__(self, root: Path):
        images = [*root.glob("boot/vmlinuz-*"), *root.glob("usr/lib/modules/*/vmlinuz")]
        modules = [*root.glob("lib/modules/*"), *root.glob("usr/lib/modules/*")]
        if not images or not modules:
            raise packages.Missing(f"a kernel in {root}")
        self.image = images[0]
        self.release = modules[0].name
        self.files = {
            path.name.split(".ko")[0].replace("-", "_"): path for path in modules[0].rglob("*.ko*")
        }

    @staticmethod
    def content(path: Path) -> bytes:
        content = path.read_bytes()
        if path.suffix == ".xz":
            return lzma.decompress(content)
        if path.suffix == ".zst":
            words = [shutil.which("zstd") or "zstd", "-dc"]
            return subprocess.run(words, input=content, capture_output=True, check=True).stdout
        return content

    def modules(self, names: list[str]) -> list[tuple[str, bytes]]:
        """Those of them that are not built in, with what they need before them."""
        ordered: dict[str, bytes] = {}

        def visit(name: str):
            if name in ordered or name not in self.files:
                return
            content = self.content(self.files[name])
            start = content.find(b"\0depends=")
            needs = (
                content[start + 9 : content.index(b"\0", start + 9)].decode() if start >= 0 else ""
            )
            for need in filter(None, needs.split(",")):
                visit(need.replace("-", "_"))
            ordered[name] = content

        for name in names:
            visit(name)
        return list(ordered.items())


def build(
    tree: Tree,
    kernel: Kernel,
    scripts: Path,
    built: tuple[Path, ...] = (),
    more: tuple[str, ...] = (),
) -> bytes:
    """The archive of a guest's root; `built`: libraries and programs of this repository; `more` programs of packages."""
    archive = Archive()
    for folder in ("dev", "proc", "sys", "tmp", "mnt", "usr/lib"):
        archive.add(folder, DIRECTORY)
    archive.add("dev/console", CHARACTERS, device=(5, 1))
    for name in ("lib64", "lib"):
        archive.add(name, LINK, b"usr/lib")
    busybox = next(tree.root.glob("**/bin/busybox"), None)
    if not busybox:
        raise packages.Missing("busybox among the packages")
    archive.add("bin/busybox", FILE, busybox.read_bytes())
    archive.add(f"usr/lib/{tree.loader.name}", FILE, tree.loader.read_bytes())
    for program in (tree.root / name for name in [*PROGRAMS, *more]):
        archive.add(f"bin/{program.name}", FILE, program.read_bytes())
        for library in tree.libraries(program):
            archive.add(f"usr/lib/{library.name}", FILE, library.read_bytes())
    for path in built:
        folder = "usr/lib" if path.suffix == ".so" else "bin"
        archive.add(f"{folder}/{path.name}", FILE, path.read_bytes())
        for needed in tree.libraries(path):
            archive.add(f"usr/lib/{needed.name}", FILE, needed.read_bytes())
    archive.add("bin/mkfs.ext4", LINK, b"mke2fs")
    archive.add("etc/xfs.conf", FILE, (tree.root / XFS_OPTIONS).read_bytes())
    for folder, names in (("modules", MODULES), ("modules/later", LATER)):
        for index, (name, content) in enumerate(kernel.modules(names)):
            archive.add(f"{folder}/{index:02}-{name}.ko", FILE, content)
    for script in sorted(scripts.iterdir()):
        name = "init" if script.name == "init" else f"live/{script.name}"
        archive.add(name, FILE, script.read_bytes())
    return archive.bytes()
