//! What NVMe drives say of themselves, and their completions.

use lodger_probe::safety::{Disk, Node};
use lodger_probe::target::nvme::structures::{Controller, HostMemory, Namespace};
use lodger_probe::target::nvme::{Command, Commands, Completion, NgTarget};
use lodger_probe::{Io, Target};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes of what chooses statuses, before the structures.
pub const HEAD_BYTES: usize = 16;

/// A drive whose replies are bytes.
#[derive(Debug)]
struct Replies(Vec<u8>);

impl Replies {
    fn part(&self, index: usize) -> Vec<u8> {
        let bytes = self.0.iter().skip(HEAD_BYTES + 4096 * index).take(4096);
        bytes.copied().collect()
    }
}

impl Commands for Replies {
    fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion> {
        let index = match command {
            Command::IdentifyController => 0,
            Command::IdentifyNamespace(_) => 1,
            Command::GetHostMemory => 2,
            Command::GetWriteCache => 3,
            Command::Read(span) | Command::Write(span) => {
                let bytes = u64::from(span.blocks) * u64::from(span.block_bytes);
                assert_eq!(bytes, data.len() as u64, "a drive would move {bytes} bytes");
                4
            }
            Command::Flush(_) | Command::Deallocate(_) | Command::Window(..) => 5,
        };
        let [errno, status] = [0, 1].map(|at| self.0.get(2 * index + at).copied().unwrap_or(0));
        if errno > 200 {
            return Err(io::Error::from_raw_os_error(i32::from(errno - 200)));
        }
        for (to, from) in data.iter_mut().zip(self.part(index)) {
            *to = from;
        }
        // Success more often than not.
        let status = u16::from(status.saturating_sub(200));
        Ok(Completion {
            status,
            result: u32::from(errno),
        })
    }
}

/// A folder like a disk's in `/sys`.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let name = format!("lodger-fuzz-nvme-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("device")).expect("a folder");
        std::fs::write(folder.join("nsid"), "1\n").expect("a file");
        folder
    })
}

/// The head, then Identify Controller, Identify Namespace and Get Features.
pub fn drive(data: &[u8]) {
    let _ = Controller::parse(data);
    let _ = Namespace::parse(data);
    let _ = HostMemory::parse(1, data, 1 << 30);
    let (name, path) = ("nvme0n1".to_owned(), folder().to_owned());
    let is_partition = false;
    let disk = Disk {
        name,
        path,
        is_partition,
    };
    let replies = Box::new(Replies(data.to_vec()));
    let node = Node::Character((240, 0));
    let Ok(mut target) = NgTarget::over(replies, Path::new("/dev/ng0n1"), true, (node, &disk))
    else {
        return;
    };
    let about = target.describe().clone();
    assert!(about.block_bytes.is_power_of_two());
    let bytes = about.transfer_bytes_max.max(4096);
    let last = about.capacity_bytes - u64::from(about.block_bytes);
    let mut samples = Vec::new();
    for io in [
        Io::read(0, 4096),
        Io::write(0, bytes),
        Io::read(last, about.block_bytes),
        Io::read(u64::MAX, 4096),
        Io::read(last, u32::MAX),
    ] {
        let _ = target.run(&[io], 1, &mut samples);
    }
    let _ = target.flush();
    let _ = target.deallocate(0, 1 << 20);
    let _ = target.deallocate(last, u64::MAX);
}
