//! A hostile guest: registers, queues, commands, lists of pages and descriptors, doorbells; against the small controller
//! that the tests of `lodger-wire` have, and against each parser alone.

#[path = "../../../crates/wire/tests/tiny/mod.rs"]
mod tiny;

use lodger_wire::command::{AdminCommand, IoCommand};
use lodger_wire::entry::{CompletionEntry, SubmissionEntry};
use lodger_wire::hmb::{HmbLimits, HmbRequest, usable_ranges};
use lodger_wire::identify::{Page, STRUCTURES};
use lodger_wire::lba::BlockSize;
use lodger_wire::log::counters;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::pci::{Bar, CLASS_NVME, ConfigSpace, Link, Msix, PciIdentity};
use lodger_wire::registers::offset;
use lodger_wire::{CommandId, NamespaceId, PageSize};
use tiny::Tiny;

const MEMORY_BYTES: usize = 0x1_0000;
const ENTRIES: u32 = 8;
/// Most regions of a command that are looked at: four times what a list's page holds.
const REGIONS: usize = 2048;
/// The rings of the admin queues and of the first I/O queues: submission, completion.
const RINGS: [(u64, u64); 2] = [(0x1000, 0x2000), (0x3000, 0x4000)];

/// What steps are made of.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let count = N.min(self.0.len());
        taken[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        taken
    }
}

struct Guest {
    tiny: Tiny,
    config: ConfigSpace,
    tails: [u32; 2],
}

impl Guest {
    fn new() -> Self {
        let identity = PciIdentity {
            vendor: 0x1179,
            device: 1,
            subsystem_vendor: 0x1179,
            subsystem: 1,
            revision: 0,
            class: CLASS_NVME,
        };
        let bar = Bar {
            index: 0,
            bytes: 0x4000,
            prefetchable: false,
        };
        let msix = Msix {
            vectors: 5,
            bar: 0,
            table_offset: 0x2000,
            pending_offset: 0x3000,
        };
        let link = Link {
            generation: 3,
            lanes: 4,
        };
        let config = ConfigSpace::new(identity, &[bar], Some(msix), link);
        Guest {
            tiny: Tiny::new(MEMORY_BYTES),
            config: config.expect("it is good"),
            tails: [0; 2],
        }
    }

    fn write32(&mut self, at: u64, value: u32) {
        self.tiny.write(at, &value.to_le_bytes());
    }

    /// As a driver does it, whatever was before.
    fn start(&mut self) {
        self.write32(offset::CC, 0);
        for (submission, completion) in RINGS {
            for ring in [submission, completion] {
                let cleared = self.tiny.memory.write(ring, &[0; 0x1000]);
                cleared.expect("memory");
            }
        }
        self.tails = [0; 2];
        self.write32(offset::AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
        self.tiny.write(offset::ASQ, &RINGS[0].0.to_le_bytes());
        self.tiny.write(offset::ACQ, &RINGS[0].1.to_le_bytes());
        self.write32(offset::CC, 4 << 20 | 6 << 16 | 1);
    }

    fn send(&mut self, queue: usize, entry: &SubmissionEntry) {
        let at = RINGS[queue].0 + 64 * u64::from(self.tails[queue]);
        self.tiny.memory.write(at, &entry.0).expect("memory");
        self.tails[queue] = (self.tails[queue] + 1) % ENTRIES;
        let doorbell = offset::DOORBELLS + 8 * queue as u64;
        self.write32(doorbell, self.tails[queue]);
        // Completions are taken at once, if there were any.
        self.write32(doorbell + 4, self.tails[queue]);
    }

    fn create_queues(&mut self) {
        let size = (ENTRIES - 1) << 16 | 1;
        for (opcode, second, at) in [(5, 3, RINGS[1].1), (1, 1 << 16 | 1, RINGS[1].0)] {
            let create = SubmissionEntry::new(opcode, CommandId(1), NamespaceId::NONE);
            let create = create.with_dword(10, size).with_dword(11, second);
            self.send(0, &create.with_prp(at, 0));
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let [kind, width, low, high] = bytes.take();
        let at = u64::from(u16::from_le_bytes([low, high]));
        let value: [u8; 8] = bytes.take();
        let part = &value[..usize::from(width % 9)];
        match kind % 9 {
            0 => drop(self.tiny.write(at, part)),
            1 => drop(self.tiny.registers.read(at, &mut [0; 9][..part.len()])),
            2 => drop(self.tiny.memory.write(at, part)),
            3 => self.start(),
            4 => self.create_queues(),
            5 => self.tiny.poll(),
            6 => {
                self.config.write(at, part);
                self.config.read(at, &mut [0; 9][..part.len()]);
            }
            // A command: opcode, and what of its dwords is not 0.
            7 => {
                let mut entry = SubmissionEntry(bytes.take());
                entry.0[0] = width;
                self.send(usize::from(low & 1), &entry);
            }
            _ => {
                let [first, second, pointer] =
                    [0, 2, 4].map(|at| u32::from(u16::from_le_bytes([value[at], value[at + 1]])));
                let entry = SubmissionEntry::new(width, CommandId(2), NamespaceId(1));
                let entry = entry.with_prp(pointer.into(), u64::from(value[6]) << 8);
                let entry = entry.with_dword(10, first).with_dword(11, second);
                self.send(usize::from(low & 1), &entry.with_dword(12, high.into()));
            }
        }
    }
}

/// Steps of a guest, and then of a driver: it must still be served.
pub fn steps(data: &[u8]) {
    let mut guest = Guest::new();
    let mut bytes = Bytes(data);
    while !bytes.0.is_empty() {
        guest.step(&mut bytes);
    }
    guest.start();
    let identify = SubmissionEntry::new(6, CommandId(77), NamespaceId::NONE).with_dword(10, 1);
    guest.send(0, &identify.with_prp(0x8000, 0));
    let mut completion = [0; 16];
    let read = guest.tiny.memory.read(RINGS[0].1, &mut completion);
    read.expect("memory");
    let (completion, phase) = CompletionEntry::decode(&completion);
    assert!(
        phase && completion.outcome.status.is_success(),
        "{completion:?}"
    );
    assert_eq!(completion.command, CommandId(77));
}

/// Bytes as commands with their lists, host memory, assignments and pages.
pub fn bytes(data: &[u8]) {
    let mut bytes = Bytes(data);
    let entry = SubmissionEntry(bytes.take());
    let memory = Ram::new(MEMORY_BYTES);
    let rest = &bytes.0[..bytes.0.len().min(MEMORY_BYTES)];
    memory.write(0, rest).expect("memory");
    let page = PageSize::from_mps(entry.0[1] >> 2 & 3).expect("a size");
    let admin = AdminCommand::parse(&entry).map(|parsed| (parsed.command.transfer(), parsed.data));
    let io = IoCommand::parse(&entry);
    let io = io.map(|parsed| (parsed.command.transfer(BlockSize::KIB4), parsed.data));
    for (transfer, pointer) in [admin, io].into_iter().flatten() {
        for to_host in [false, true] {
            let mut sum = 0;
            for region in pointer
                .regions(&memory, page, transfer.bytes, to_host)
                .take(REGIONS)
            {
                let Ok(region) = region else { break };
                assert!(region.bytes > 0);
                sum += region.bytes;
            }
            assert!(sum <= transfer.bytes);
        }
    }
    let request = HmbRequest::decode(std::array::from_fn(|index| entry.dword(11 + index)));
    if let Ok(ranges) = usable_ranges(&memory, &request, &HmbLimits::default(), page) {
        let sum: u128 = ranges.iter().map(|range| u128::from(range.bytes)).sum();
        assert!(sum <= u128::from(request.size_pages) * u128::from(page.bytes()));
    }
    let text = String::from_utf8_lossy(rest);
    let structure = STRUCTURES[usize::from(entry.0[0]) % STRUCTURES.len()];
    let mut named = Page::new(structure);
    for line in text.lines().take(3) {
        let _ = named.assign(line);
    }
    let mut again = Page::new(structure);
    for assignment in named.assignments() {
        again.assign(&assignment).expect("it was taken before");
    }
    assert_eq!(again.bytes(), named.bytes());
    let _ = counters(rest);
}

/// What the fuzzer begins with: target, name, bytes.
pub fn seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let step = |kind: u8, width: u8, at: u16, value: [u8; 8]| {
        let [low, high] = at.to_le_bytes();
        [&[kind, width, low, high][..], &value].concat()
    };
    let start = [step(3, 0, 0, [0; 8]), step(4, 0, 0, [0; 8])].concat();
    // Opcode, queue and blocks; dwords 10 and 11, data, list.
    let command = |opcode, queue: u16, value| step(8, opcode, queue, value);
    let accesses = [1u8, 2, 5, 8, 9, 0x0c]
        .map(|opcode| command(opcode, 1 | 7 << 8, [3, 0, 4, 0, 0, 0x80, 0x90, 0]));
    let features = [0x06u8, 0x02, 0x09, 0x0a, 0x0c, 0x80, 0x84]
        .map(|opcode| command(opcode, 0, [1, 0, 0, 0, 0, 0x80, 0, 0]));
    let host_memory = command(0x09, 16 << 8, [0x0d, 0, 1, 0, 0, 0, 0, 0]);
    let shadows = [
        command(0x7c, 0, [0, 0, 0, 0, 0, 0x50, 0x60, 0]),
        step(5, 0, 0, [0; 8]),
    ]
    .concat();
    let writes = [0x14u16, 0x20, 0x24, 0x28, 0x1000, 0x1008]
        .map(|at| step(0, 4, at, [1, 0, 0x46, 0, 0, 0, 0, 0]));
    let mut read = SubmissionEntry::new(2, CommandId(1), NamespaceId(1)).with_dword(12, 511);
    read = read.with_prp(0x100, 0x200);
    let whole = [&read.0[..], &[0; 0x400], b"HMPRE=1\nSN=abc\n"].concat();
    vec![
        (
            "guest",
            "accesses",
            [start.clone(), accesses.concat()].concat(),
        ),
        (
            "guest",
            "features",
            [start.clone(), features.concat(), host_memory].concat(),
        ),
        ("guest", "shadows", [start, shadows].concat()),
        ("guest", "registers", writes.concat()),
        ("wire", "read", whole),
    ]
}
