//! NVMe drives by their replies (`fixtures/nvme`): a recorded drive, an honest one made by hand, failing
//! ioctls, truncated and absurd structures. The prober must describe the first and survive the others.
#![cfg(target_os = "linux")]

use lodger_probe::safety::{Disk, Node};
use lodger_probe::target::nvme::structures::{Controller, HostMemory, Namespace};
use lodger_probe::target::nvme::{Command, Commands, Completion, NgTarget};
use lodger_probe::{Description, HmbState, HmbSwitch, Io, Target, TargetError, Transport};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const NODE: Node = Node::Character((240, 0));

/// Reads a fixture.
fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nvme");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let mut bytes = vec![0; 4096];
    for line in text.lines() {
        let line = line.split('#').next().unwrap();
        let (offset, values) = line.split_once(':').unwrap();
        let offset: usize = offset.parse().unwrap();
        for (i, value) in values.split_whitespace().enumerate() {
            bytes[offset + i] = u8::from_str_radix(value, 16).unwrap();
        }
    }
    bytes
}

/// A drive that only replays, and keeps what it was asked.
#[derive(Clone, Debug)]
struct Recording {
    controller: Vec<u8>,
    namespace: Vec<u8>,
    host_memory: Vec<u8>,
    hmb_enabled: bool,
    /// Error number of every admin command, and of every other.
    admin_errno: Option<i32>,
    io_errno: Option<i32>,
    status: u16,
    asked: Arc<Mutex<Vec<Command>>>,
}

impl Recording {
    /// What it was asked since the last time, but for what its blocks are: how often that is asked depends
    /// on the time a test takes.
    fn asked(&self) -> Vec<Command> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.retain(|command| !matches!(command, Command::IdentifyNamespace(_)));
        asked
    }

    fn new() -> Self {
        Recording {
            controller: fixture("controller.hex"),
            namespace: fixture("namespace.hex"),
            host_memory: fixture("host-memory.hex"),
            hmb_enabled: true,
            admin_errno: None,
            io_errno: None,
            status: 0,
            asked: Arc::default(),
        }
    }
}

impl Commands for Recording {
    fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion> {
        self.asked.lock().unwrap().push(*command);
        let mut result = 0;
        let (errno, reply) = match command {
            Command::IdentifyController => (self.admin_errno, &self.controller),
            Command::IdentifyNamespace(1) => (self.admin_errno, &self.namespace),
            Command::GetHostMemory => {
                result = u32::from(self.hmb_enabled);
                (self.admin_errno, &self.host_memory)
            }
            Command::Read(span) | Command::Write(span) => {
                assert_eq!(data.len() as u32, span.blocks * span.block_bytes);
                (self.io_errno, &Vec::new())
            }
            Command::GetWriteCache => {
                result = 1;
                (self.admin_errno, &Vec::new())
            }
            Command::Flush(1) | Command::Deallocate(_) => (self.io_errno, &Vec::new()),
            other => panic!("{other:?} is not asked of this drive"),
        };
        if let Some(errno) = errno {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let length = reply.len().min(data.len());
        data[..length].copy_from_slice(&reply[..length]);
        let status = self.status;
        Ok(Completion { status, result })
    }
}

/// A device's replies as a kernel gave them (`qemu.rec`).
#[derive(Debug)]
struct Recorded {
    /// Name of the command, errno or (status, dword 0), bytes.
    replies: Vec<(String, Result<Completion, i32>, Vec<u8>)>,
    write_cache: bool,
}

impl Recorded {
    fn new(write_cache: bool) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nvme");
        let text = std::fs::read_to_string(folder.join("qemu.rec")).unwrap();
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap();
        let mut replies = Vec::new();
        for reply in text.split('@').skip(1) {
            let mut lines = reply.lines();
            let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
            let outcome = match words[1..] {
                ["status", status, "result", result] => {
                    let (status, result) = (hex(status) as u16, hex(result));
                    Ok(Completion { status, result })
                }
                ["errno", errno] => Err(errno.parse().unwrap()),
                _ => panic!("{words:?}"),
            };
            let mut bytes = vec![0; 4096];
            for line in lines {
                let (offset, values) = line.split_once(':').unwrap();
                let values = values.split_whitespace().map(|value| hex(value) as u8);
                let offset: usize = offset.parse().unwrap();
                values
                    .enumerate()
                    .for_each(|(i, value)| bytes[offset + i] = value);
            }
            replies.push((words[0].to_owned(), outcome, bytes));
        }
        Recorded {
            replies,
            write_cache,
        }
    }
}

impl Commands for Recorded {
    fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion> {
        let name = match command {
            Command::IdentifyController => "controller",
            Command::IdentifyNamespace(1) => "namespace",
            Command::IdentifyNamespace(2) => "no-namespace",
            Command::GetHostMemory => "host-memory",
            Command::GetWriteCache if !self.write_cache => {
                return Ok(Completion {
                    status: 0,
                    result: 0,
                });
            }
            Command::GetWriteCache => "write-cache",
            other => panic!("{other:?} was not recorded"),
        };
        let reply = self.replies.iter().find(|reply| reply.0 == name).unwrap();
        data.copy_from_slice(&reply.2[..data.len()]);
        reply.1.map_err(io::Error::from_raw_os_error)
    }
}

#[test]
fn a_drive_of_a_real_kernel_is_described_as_it_was_recorded() {
    let sys = Sys::new("recorded", None);
    let disk = |nsid: &str| {
        std::fs::write(sys.0.join("nsid"), nsid).unwrap();
        let (name, path) = ("nvme0n1".to_owned(), sys.0.clone());
        Disk {
            name,
            path,
            is_partition: false,
        }
    };
    let open = |nsid, write_cache| {
        let commands = Box::new(Recorded::new(write_cache));
        NgTarget::over(commands, Path::new("/dev/ng0n1"), true, (NODE, &disk(nsid)))
    };
    let target = open("1", true).unwrap();
    let about = target.describe();
    assert_eq!(
        [&about.model, &about.serial, &about.firmware],
        ["QEMU NVMe Ctrl", "RECORDED0001", "7.2.22"]
    );
    assert_eq!((about.capacity_bytes, about.block_bytes), (64 << 20, 512));
    // It takes 512 KiB; we send less.
    assert_eq!(about.transfer_bytes_max, 128 << 10);
    assert_eq!(
        about.hmb,
        HmbSwitch::NotUsed,
        "HMPRE is 0: no switch is looked for"
    );
    assert_eq!((&about.no_flush, &about.no_deallocate), (&None, &None));
    assert_eq!(about.notes.len(), 1);
    assert!(about.notes[0].contains("above 128 KiB go in parts"));
    // A drive whose write cache somebody has turned off.
    let notes = open("1", false).unwrap().describe().notes.join("\n");
    assert!(notes.contains("write cache is turned off"), "{notes}");
    // This drive answers for a namespace it does not have, with zeros.
    let error = open("2", true).unwrap_err().to_string();
    assert!(error.contains("NSZE is 0"), "{error}");
    // And refuses a feature that it does not have, which is a status, not an error of the kernel.
    let refused = Recorded::new(true)
        .submit(&Command::GetHostMemory, &mut [0; 4096])
        .unwrap();
    assert_eq!(
        refused.status, 0x4002,
        "Invalid Field in Command, Do Not Retry"
    );
}

/// What matters of `/sys/block/nvme0n1`.
struct Sys(PathBuf);

impl Sys {
    fn new(name: &str, hmb: Option<&str>) -> Self {
        let name = format!("lodger-nvme-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("device")).unwrap();
        std::fs::write(folder.join("nsid"), "1\n").unwrap();
        std::fs::write(folder.join("device/firmware_rev"), "FW1.0\n").unwrap();
        if let Some(state) = hmb {
            std::fs::write(folder.join("device/hmb"), state).unwrap();
        }
        Sys(folder)
    }

    fn hmb(&self) -> String {
        std::fs::read_to_string(self.0.join("device/hmb")).unwrap()
    }

    fn open(&self, recording: &Recording, write: bool) -> Result<NgTarget, TargetError> {
        let disk = Disk {
            name: "nvme0n1".to_owned(),
            path: self.0.clone(),
            is_partition: false,
        };
        let commands = Box::new(recording.clone());
        NgTarget::over(commands, Path::new("/dev/ng0n1"), write, (NODE, &disk))
    }

    fn about(&self, recording: &Recording) -> Description {
        self.open(recording, false).unwrap().describe().clone()
    }
}

impl Drop for Sys {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_drive_is_described_as_it_describes_itself() {
    let sys = Sys::new("whole", Some("1\n"));
    let recording = Recording::new();
    let about = sys.about(&recording);
    assert_eq!(about.name, "/dev/ng0n1");
    assert_eq!(about.model, "Hand-made SSD 500GB");
    assert_eq!(about.serial, "LODGER0001");
    assert_eq!(about.firmware, "FW1.0");
    assert_eq!(about.capacity_bytes, 500_107_862_016);
    assert_eq!(
        (about.block_bytes, about.transfer_bytes_max),
        (512, 128 << 10)
    );
    assert_eq!(about.transport, Transport::Direct);
    // What it has, not what it asks for: bytes per entry depend on it.
    let granted_bytes = 64 << 20;
    assert_eq!(about.hmb, HmbSwitch::OnOff { granted_bytes });
    let notes = about.notes.join("\n");
    let said = "asks for 131072 KiB of host memory, 8192 KiB at least; it has 65536 KiB";
    assert!(notes.contains(said), "{notes}");
    let asked = recording.asked.lock().unwrap().clone();
    let harmless = [
        Command::IdentifyController,
        Command::GetWriteCache,
        Command::GetHostMemory,
        Command::IdentifyNamespace(1),
    ];
    assert_eq!(asked, harmless, "nothing else is sent");
}

#[test]
fn what_the_drive_lacks_is_said() {
    let sys = Sys::new("lacks", Some("1\n"));
    let mut recording = Recording::new();
    recording.controller[77] = 1;
    recording.controller[520] = 0;
    recording.controller[525] = 6;
    recording.namespace[26] = 1;
    let target = sys.open(&recording, true).unwrap();
    let about = target.describe();
    assert_eq!((about.block_bytes, about.transfer_bytes_max), (4096, 8192));
    assert_eq!(about.capacity_bytes, 976_773_168 * 4096);
    assert_eq!(
        about.no_deallocate.as_deref(),
        Some("the drive knows no Dataset Management")
    );
    assert!(about.notes.join("\n").contains("no volatile write cache"));
    recording.controller[272..280].fill(0);
    let notes = sys.about(&recording);
    assert_eq!(notes.hmb, HmbSwitch::NotUsed);
    // Off when found: what it will be given is not known.
    let mut recording = Recording::new();
    recording.hmb_enabled = false;
    let about = sys.about(&recording);
    assert_eq!(about.hmb, HmbSwitch::OnOff { granted_bytes: 0 });
    assert!(about.notes.join("\n").contains("has none now"));
    // An old kernel: known, but not to be switched.
    let sys = Sys::new("old", None);
    let about = sys.about(&Recording::new());
    assert!(matches!(about.hmb, HmbSwitch::Unavailable(_)));
    assert!(about.notes.join("\n").contains("it has 65536 KiB"));
}

#[test]
fn transfers_flush_deallocate_and_the_switch_reach_the_drive() {
    let sys = Sys::new("works", Some("1"));
    let recording = Recording::new();
    let mut target = sys.open(&recording, true).unwrap();
    recording.asked.lock().unwrap().clear();
    let mut samples = Vec::new();
    let ios: Vec<Io> = (0..100).map(|i| Io::read(i * 8192, 4096)).collect();
    target.run(&ios, 4, &mut samples).unwrap();
    assert_eq!(samples.len(), 100);
    target
        .run(&[Io::write(1 << 30, 131_072)], 1, &mut samples)
        .unwrap();
    target.flush().unwrap();
    target.deallocate(1 << 30, (2 << 30) + 4096).unwrap();
    let asked = recording.asked();
    let mut reads: Vec<u64> = asked
        .iter()
        .filter_map(|command| match command {
            Command::Read(span) => Some(span.lba),
            _ => None,
        })
        .collect();
    reads.sort_unstable();
    assert_eq!(reads, (0..100).map(|i| i * 16).collect::<Vec<_>>());
    let [Command::Write(write), Command::Flush(1), trims @ ..] = &asked[100..] else {
        panic!("{:?}", &asked[100..]);
    };
    assert_eq!((write.lba, write.blocks, write.nsid), (1 << 21, 256, 1));
    let trimmed: Vec<(u64, u32)> = trims
        .iter()
        .map(|command| match command {
            Command::Deallocate(span) => (span.lba, span.blocks),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        trimmed,
        [(1 << 21, 1 << 21), (2 << 21, 1 << 21), (3 << 21, 8)]
    );
    // Beyond the end, between blocks, too long, endless: not sent.
    for io in [
        Io::read(500_107_862_016, 4096),
        Io::read(u64::MAX - 511, 512),
        Io::read(100, 512),
        Io::read(0, 100),
        Io::read(0, 0),
        Io::read(0, 256 << 10),
    ] {
        assert!(target.run(&[io], 1, &mut samples).is_err(), "{io:?}");
    }
    assert!(target.deallocate(u64::MAX - 4095, 8192).is_err());
    assert_eq!(recording.asked(), []);
    target.set_hmb(HmbState::Off).unwrap();
    assert_eq!(sys.hmb(), "0");
    assert!(target.set_hmb(HmbState::Bytes(1 << 20)).is_err());
    drop(target);
    assert_eq!(sys.hmb(), "1", "left as it was found");
}

/// Found by the fuzzer: 4 GiB were taken and filled before anybody looked whether a drive has so much.
#[test]
fn for_a_transfer_that_is_too_long_no_memory_is_taken() {
    let most_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.unwrap().parse::<u64>().unwrap()
    };
    let sys = Sys::new("long", None);
    let mut target = sys.open(&Recording::new(), false).unwrap();
    let before_kib = most_kib();
    let io = Io::read(0, u32::MAX - 511);
    assert!(target.run(&[io], 1, &mut Vec::new()).is_err());
    assert!(most_kib() - before_kib < 1 << 20);
}

#[test]
fn without_consent_nothing_that_changes_data_is_sent() {
    let sys = Sys::new("consent", None);
    let recording = Recording::new();
    let mut target = sys.open(&recording, false).unwrap();
    recording.asked.lock().unwrap().clear();
    assert!(
        target
            .run(&[Io::write(0, 4096)], 1, &mut Vec::new())
            .is_err()
    );
    assert!(
        target
            .run(&[Io::write(0, 4096); 9], 3, &mut Vec::new())
            .is_err()
    );
    assert!(target.deallocate(0, 4096).is_err());
    assert!(target.flush().is_err());
    assert_eq!(recording.asked(), []);
}

#[test]
fn failing_ioctls_are_told_by_their_reason() {
    let sys = Sys::new("fails", Some("1"));
    for (errno, said) in [
        (
            25,
            "inappropriate ioctl for device (this is no NVMe device)",
        ),
        (13, "permission denied (it needs root)"),
        (22, "invalid argument"),
    ] {
        let mut recording = Recording::new();
        recording.admin_errno = Some(errno);
        let error = sys.open(&recording, false).unwrap_err().to_string();
        assert!(
            error.contains("Identify Controller failed") && error.contains(said),
            "{error}"
        );
        let mut recording = Recording::new();
        recording.io_errno = Some(errno);
        let mut target = sys.open(&recording, true).unwrap();
        for queue_depth in [1, 4] {
            let ios = [Io::read(4096, 4096); 8];
            let error = target.run(&ios, queue_depth, &mut Vec::new()).unwrap_err();
            let reason = said.to_owned();
            let what = "read";
            assert_eq!(
                error,
                TargetError::Io {
                    what,
                    offset: 4096,
                    bytes: 4096,
                    reason
                }
            );
        }
        assert!(matches!(target.flush(), Err(TargetError::Unsupported(_))));
        assert!(target.deallocate(0, 4096).is_err());
    }
    let mut recording = Recording::new();
    recording.status = 0x4002;
    let error = sys.open(&recording, false).unwrap_err().to_string();
    assert!(error.contains("status 0x4002"), "{error}");
    let nameless = Sys::new("nsid", None);
    std::fs::write(nameless.0.join("nsid"), "-7").unwrap();
    let error = nameless.open(&Recording::new(), false).unwrap_err();
    assert!(
        error.to_string().contains("does not say which namespace"),
        "{error}"
    );
}

/// A drive moves as many bytes as its blocks have: one that was formatted under the prober would write past
/// the buffer.
#[test]
fn a_drive_that_was_formatted_meanwhile_is_not_read_or_written_any_more() {
    let sys = Sys::new("formatted", None);
    let recording = Recording::new();
    let namespace = Arc::new(Mutex::new(recording.namespace.clone()));
    #[derive(Debug)]
    struct Changing(Recording, Arc<Mutex<Vec<u8>>>);
    impl Commands for Changing {
        fn submit(&self, command: &Command, data: &mut [u8]) -> io::Result<Completion> {
            let namespace = self.1.lock().unwrap().clone();
            let recording = self.0.clone();
            Recording {
                namespace,
                ..recording
            }
            .submit(command, data)
        }
    }
    let (name, path) = ("nvme0n1".to_owned(), sys.0.clone());
    let is_partition = false;
    let disk = Disk {
        name,
        path,
        is_partition,
    };
    let drive = Box::new(Changing(recording.clone(), namespace.clone()));
    let mut target = NgTarget::over(drive, Path::new("/dev/ng0n1"), true, (NODE, &disk)).unwrap();
    let mut samples = Vec::new();
    target.run(&[Io::write(0, 4096)], 1, &mut samples).unwrap();
    // Format 1: blocks of 4 KiB.
    namespace.lock().unwrap()[26] = 1;
    std::thread::sleep(std::time::Duration::from_millis(600));
    recording.asked();
    for io in [Io::read(0, 4096), Io::write(0, 4096)] {
        let error = target.run(&[io], 1, &mut samples).unwrap_err();
        assert!(
            matches!(&error, TargetError::Gone(why) if why.contains("its blocks")),
            "{error}"
        );
    }
    assert!(target.deallocate(0, 4096).is_err());
    assert_eq!(recording.asked(), [], "nothing that moves data was sent");
}

#[test]
fn absurd_values_are_refused_and_named() {
    let sys = Sys::new("absurd", Some("1"));
    let changed = |at: usize, bytes: &[u8]| {
        let mut recording = Recording::new();
        recording.namespace[at..at + bytes.len()].copy_from_slice(bytes);
        sys.open(&recording, false).unwrap_err().to_string()
    };
    for (at, bytes, said) in [
        (0, &[0; 8][..], "NSZE is 0"),
        (0, &[255; 8][..], "so many bytes cannot be addressed"),
        (
            0,
            &[0, 0, 0, 0, 0, 0, 64, 0][..],
            "so many bytes cannot be addressed",
        ),
        (0, &[1, 0, 0, 0, 0, 0, 0, 0][..], "NCAP"),
        (25, &[255][..], "64 formats at most"),
        (26, &[5][..], "there is no such format"),
        // No format at all: the entry is empty.
        (128, &[0; 4][..], "LBADS is 0"),
        (130, &[63][..], "LBADS is 63"),
        (128, &[8, 0][..], "have metadata"),
        (
            0,
            &[9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0][..],
            "smaller than 1 MiB",
        ),
    ] {
        let found = changed(at, bytes);
        assert!(found.contains(said), "{found} has no `{said}`");
    }
    // Host memory: the probe goes on without it.
    let mut recording = Recording::new();
    recording.controller[276..280].fill(255);
    let about = sys.about(&recording);
    assert!(
        about.notes.join("\n").contains("HMMIN is 4294967295"),
        "{:?}",
        about.notes
    );
    for (hsize, said) in [([0; 4], "HSIZE is 0"), ([255; 4], "it is more than HMPRE")] {
        let mut recording = Recording::new();
        recording.host_memory[..4].copy_from_slice(&hsize);
        let about = sys.about(&recording);
        assert_eq!(about.hmb, HmbSwitch::OnOff { granted_bytes: 0 });
        assert!(about.notes.join("\n").contains(said), "{:?}", about.notes);
    }
}

#[test]
fn truncated_structures_are_errors_at_every_length() {
    let (controller, namespace) = (fixture("controller.hex"), fixture("namespace.hex"));
    let host_memory = fixture("host-memory.hex");
    for length in 0..4096 {
        let whole = Controller::parse(&controller[..length]).is_ok();
        assert_eq!(whole, length >= 526, "{length}");
        let whole = Namespace::parse(&namespace[..length]).is_ok();
        assert_eq!(whole, length >= 132, "{length}");
        let whole = HostMemory::parse(1, &host_memory[..length], 1 << 30).is_ok();
        assert_eq!(whole, length >= 4, "{length}");
    }
}
