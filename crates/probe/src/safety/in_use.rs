//! Whether somebody uses what is to be written to, however it is reached: as a disk, through one of its
//! partitions, a loop device, a second way to the same drive, or an open file.

use super::{CLAIMED, Disk, Identity, Machine, Node, Number, claim, disk_of, is_busy, unique_name};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Loop devices over loop devices that are followed.
const DEPTH_MAX: u32 = 8;

/// Why a target must not be written to; `None` if nothing speaks against it. `name` is what its user
/// called it; `is_held` tells that it is open exclusively, by ourselves.
#[must_use]
pub fn refusal(
    identity: &Identity,
    name: &str,
    machine: &Machine,
    is_held: bool,
) -> Option<String> {
    let look = Look { machine, name };
    match (identity.node, &identity.disk) {
        (node @ Node::File { .. }, _) => look.file(node, identity.bytes, ""),
        (node, Some(disk)) => look.disk(disk, node, is_held),
        (_, None) => Some(format!("`/sys` does not know `{name}`")),
    }
}

struct Look<'a> {
    machine: &'a Machine,
    name: &'a str,
}

impl Look<'_> {
    fn disk(&self, disk: &Disk, node: Node, is_held: bool) -> Option<String> {
        let name = self.name;
        if disk.is_partition {
            return Some(format!(
                "`{name}` is a partition; only whole disks are probed so"
            ));
        }
        let parts = partitions(disk);
        let all: Vec<Part> = std::iter::once(Part::of(disk))
            .chain(parts.clone())
            .collect();
        let used = self.used(&all, !is_held, "").or_else(|| {
            parts.first().map(|part| {
                let part = &part.name;
                format!(
                    "`{name}` is partitioned (`{part}`): remove the partitions first if their data \
                     may go"
                )
            })
        });
        used.or_else(|| self.backing(disk, 0))
            .or_else(|| self.another_way(disk))
            .or_else(|| self.written_by(|other| other == node || is_one_of(other, &all)))
    }

    /// What a path of the kernel's leads to; a device without a node, or with a file in its place, has its number in `/sys`.
    fn node(&self, path: &Path) -> Option<Node> {
        if !path.is_absolute() {
            return None;
        }
        let Ok(name) = path.strip_prefix("/dev") else {
            return Node::of_path(path);
        };
        let found = Node::of_path(&self.machine.dev.join(name));
        if let Some(Node::Block(_)) = found {
            return found;
        }
        let dev = self.machine.sys.join("class/block").join(name).join("dev");
        let text = std::fs::read_to_string(dev).ok();
        let number = text.and_then(|text| parse_number(text.trim()));
        number.map(Node::Block).or(found)
    }

    /// Whether a disk or a partition of those given is used by the kernel; `but` names a loop device that
    /// does not count.
    fn used(&self, parts: &[Part], claims: bool, but: &str) -> Option<String> {
        let is_one = |node| is_one_of(node, parts);
        let held = || parts.iter().find_map(|part| self.holder(part));
        let claimed = || {
            let part = parts.iter().filter(|_| claims).find(|part| {
                let text = part.number.map(|(major, minor)| format!("{major}:{minor}"));
                claim(&part.name, &text.unwrap_or_default(), self.machine)
                    .is_err_and(|error| is_busy(&error))
            })?;
            Some(format!("`/dev/{}` is {CLAIMED}", part.name))
        };
        self.mounted(parts)
            .or_else(|| self.swapped(is_one, None))
            .or_else(held)
            .or_else(|| self.looped(is_one, None, but))
            .or_else(claimed)
    }

    fn holder(&self, part: &Part) -> Option<String> {
        let holder = entries(&part.path.join("holders")).into_iter().next()?;
        let name = &part.name;
        Some(format!(
            "`{name}` is part of `{holder}` (LVM, RAID or encryption)"
        ))
    }

    /// By the number of the file system's device, and by its source: some, as btrfs, have numbers of
    /// their own.
    fn mounted(&self, parts: &[Part]) -> Option<String> {
        let Ok(text) = std::fs::read(self.machine.proc.join("self/mountinfo")) else {
            return Some("`/proc` does not tell what is mounted".to_owned());
        };
        for line in text.split(|byte| *byte == b'\n') {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let source = words.iter().position(|word| *word == b"-").map(|at| at + 2);
            let source = source
                .and_then(|at| words.get(at))
                .copied()
                .unwrap_or_default();
            let source = unescape(source);
            let by_source = self.node(&source);
            for part in parts {
                let text = part.number.map(|(major, minor)| format!("{major}:{minor}"));
                let by_number = text.is_some_and(|text| words.get(2) == Some(&text.as_bytes()));
                let is_it =
                    by_source.is_some_and(|node| is_one_of(node, std::slice::from_ref(part)));
                if by_number || is_it {
                    let at = unescape(words.get(4).copied().unwrap_or_default());
                    let at = at.display().to_string();
                    let name = &part.name;
                    return Some(format!(
                        "`/dev/{name}` is mounted at `{}`",
                        at.escape_debug()
                    ));
                }
            }
        }
        None
    }

    /// Swap areas: devices and files. One that is not to be found from here may be any that has room for it.
    fn swapped(&self, is_it: impl Fn(Node) -> bool, bytes: Option<u64>) -> Option<String> {
        let text = std::fs::read(self.machine.proc.join("swaps")).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n').skip(1) {
            let mut words = line
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|word| !word.is_empty());
            let (Some(path), Some(_), Some(size)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let path = unescape(path);
            let size = std::str::from_utf8(size)
                .ok()
                .and_then(|kib| kib.parse::<u64>().ok());
            let shown = path.display().to_string();
            let shown = shown.escape_debug();
            match self.node(&path) {
                Some(node) if is_it(node) => {
                    return Some(format!("`{shown}` is used for swapping"));
                }
                None if size.map(|kib| kib.saturating_mul(1 << 10)) < bytes => {
                    return Some(format!(
                        "the system swaps to `{shown}`, which is not to be found from here and may be it"
                    ));
                }
                _ => {}
            }
        }
        None
    }

    /// Loop devices over it, but for the one named. Where their file is not to be found from here (it is
    /// deleted, or in a container), a file that has room for it may be it.
    fn looped(
        &self,
        is_it: impl Fn(Node) -> bool,
        bytes: Option<u64>,
        but: &str,
    ) -> Option<String> {
        let folder = self.machine.sys.join("block");
        for name in entries(&folder) {
            let path = folder.join(&name);
            let is_partition = false;
            let disk = Disk {
                name,
                path,
                is_partition,
            };
            let Some(file) = backing_file(&disk).filter(|_| disk.name != but) else {
                continue;
            };
            let (name, shown) = (&disk.name, file.display().to_string());
            let shown = shown.escape_debug();
            let number = |file| disk.text(file).parse::<u64>().unwrap_or(0);
            let end = number("size")
                .saturating_mul(512)
                .saturating_add(number("loop/offset"));
            match self.node(&file) {
                Some(node) if is_it(node) => {
                    return Some(format!("loop device `/dev/{name}` shows it (`{shown}`)"));
                }
                None if bytes.is_some_and(|bytes| end <= bytes) => {
                    return Some(format!(
                        "loop device `/dev/{name}` shows `{shown}`, which is not to be found from here \
                         and may be it"
                    ));
                }
                _ => {}
            }
        }
        None
    }

    /// What a loop device shows is used otherwise.
    fn backing(&self, disk: &Disk, depth: u32) -> Option<String> {
        let file = backing_file(disk)?;
        let bytes = || std::fs::metadata(&file).map_or(u64::MAX, |metadata| metadata.len());
        let used = match self.node(&file) {
            _ if depth > DEPTH_MAX => Some("loop devices go on without end".to_owned()),
            Some(Node::Block(number)) => self.under(number, &disk.name, depth),
            Some(node) => self.file(node, bytes(), &disk.name),
            None => Some("it is not to be found from here, nor who uses it".to_owned()),
        };
        let shown = file.display().to_string();
        used.map(|why| format!("it shows `{}`: {why}", shown.escape_debug()))
    }

    /// A block device, whole or a partition, that a loop device shows.
    fn under(&self, number: Number, but: &str, depth: u32) -> Option<String> {
        let Some(disk) = disk_of(&self.machine.sys, number) else {
            return Some("`/sys` does not know it".to_owned());
        };
        let all = std::iter::once(Part::of(&disk)).chain(partitions(&disk));
        // Of a disk with partitions, the one that is shown, and the disk as a whole.
        let parts: Vec<Part> = all
            .filter(|part| {
                !disk.is_partition || part.number == Some(number) || part.name == disk.name
            })
            .collect();
        let node = Node::Block(number);
        self.used(&parts, true, but)
            .or_else(|| self.backing(&disk, depth + 1))
            .or_else(|| self.written_by(|other| other == node))
    }

    /// A regular file, which the loop device named shows.
    fn file(&self, node: Node, bytes: u64, but: &str) -> Option<String> {
        let is_it = |other| other == node;
        self.swapped(is_it, Some(bytes))
            .or_else(|| self.looped(is_it, Some(bytes), but))
            .or_else(|| self.written_by(is_it))
    }

    /// The same drive as another disk of this machine, where the kernel does not join the ways to it.
    fn another_way(&self, disk: &Disk) -> Option<String> {
        let unique = unique_name(disk);
        let folder = self.machine.sys.join("block");
        let names = entries(&folder).into_iter();
        for name in names.filter(|name| *name != disk.name && !unique.is_empty()) {
            let Ok(path) = folder.join(&name).canonicalize() else {
                continue;
            };
            let is_partition = false;
            let other = Disk {
                name,
                path,
                is_partition,
            };
            // A way that multipath has joined is hidden, and is not used by itself.
            if unique_name(&other) != unique || other.text("hidden") == "1" {
                continue;
            }
            let all = std::iter::once(Part::of(&other)).chain(partitions(&other));
            let all: Vec<Part> = all.collect();
            let used = self.used(&all, true, "");
            if let Some(why) = used.or_else(|| self.written_by(|node| is_one_of(node, &all))) {
                return Some(format!("it is also `/dev/{}`: {why}", other.name));
            }
        }
        None
    }

    /// Another program has it open for writing: a virtual machine, a server. Of those of other users only
    /// root hears.
    fn written_by(&self, is_it: impl Fn(Node) -> bool) -> Option<String> {
        let own = std::process::id().to_string();
        let processes = entries(&self.machine.proc).into_iter();
        let others =
            processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own);
        for id in others {
            let folder = self.machine.proc.join(&id);
            for open in entries(&folder.join("fd")) {
                let node = Node::of_path(&folder.join("fd").join(&open));
                if node.is_some_and(&is_it) && is_for_writing(&folder.join("fdinfo").join(open)) {
                    let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
                    let name = name.trim().escape_debug();
                    return Some(format!("process {id} (`{name}`) has it open for writing"));
                }
            }
        }
        None
    }
}

/// A disk or a partition.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    path: PathBuf,
    number: Option<Number>,
}

impl Part {
    fn of(disk: &Disk) -> Self {
        let number = parse_number(&disk.text("dev"));
        Part {
            name: disk.name.clone(),
            path: disk.path.clone(),
            number,
        }
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl Node {
    fn of_path(path: &Path) -> Option<Self> {
        Node::of(&std::fs::metadata(path).ok()?)
    }
}

fn is_one_of(node: Node, parts: &[Part]) -> bool {
    matches!(node, Node::Block(number) if parts.iter().any(|part| part.number == Some(number)))
}

fn partitions(disk: &Disk) -> Vec<Part> {
    let names = entries(&disk.path).into_iter();
    let names = names.filter(|name| disk.path.join(name).join("partition").exists());
    let part = |name: String| {
        Part::of(&Disk {
            path: disk.path.join(&name),
            name,
            is_partition: true,
        })
    };
    names.map(part).collect()
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten();
    let mut names: Vec<String> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The file that a loop device shows.
fn backing_file(disk: &Disk) -> Option<PathBuf> {
    let text = std::fs::read(disk.path.join("loop/backing_file")).ok()?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    (!text.is_empty()).then(|| PathBuf::from(OsString::from_vec(text.to_vec())))
}

/// A path as `/proc` writes it: spaces and such as backslash and three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text;
    while let [first, rest @ ..] = left {
        left = rest;
        bytes.push(*first);
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..]) =
            (*first, rest)
        {
            bytes.pop();
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            left = rest;
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

/// By the flags that the kernel tells of an open file, in octal: the last digit is the access mode.
fn is_for_writing(info: &Path) -> bool {
    let text = std::fs::read_to_string(info).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let mode = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // Not told: taken for the worse.
    mode.is_none_or(|flags| flags & 3 != 0)
}
