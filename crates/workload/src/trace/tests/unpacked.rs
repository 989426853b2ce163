//! Is a packed file read as what is in it?

use super::{noted, record};
use crate::WorkloadError;
use crate::trace::{Description, Format, Options, Record, Trace, load};
use flate2::{Compression, write::GzEncoder};
use lodger_core::Op;
use std::io::Write;

const TEXT: &str =
    "time_us,op,offset_bytes,length_bytes\n0,R,8192,4096\n1.5,W,0,512\n9,R,4096,512\n";

/// `TEXT` by `zstd -19 --check` 1.5.4.
const ZSTD: &str = "28b52ffd244c25020012440e12903d060c059aa4ffe9aa0a9ec41abba82801800c73f504c830175f376180\
                    93443949035d5d80986175f3d8e5dd5876f83dfb6b8f357354e60200e2144e18a613619f7950";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Trace, Description), WorkloadError> {
    load(bytes, "t.packed", &Options::default())
}

fn expected() -> Vec<Record> {
    vec![
        record(0, Op::Read, 8192, 4096),
        record(1_500_000, Op::Write, 0, 512),
        record(9_000_000, Op::Read, 4096, 512),
    ]
}

#[test]
fn a_compressed_trace_is_read_as_what_is_in_it() {
    for (packed, what) in [(gzip(TEXT.as_bytes()), "gzip"), (bytes_of(ZSTD), "zstd")] {
        let (trace, description) = read(&packed).unwrap();
        assert_eq!(trace.records().collect::<Vec<_>>(), expected());
        let says = format!("unpacked from {what}");
        assert!(
            description.summary.contains(&says),
            "{}",
            description.summary
        );
    }
}

#[test]
fn files_put_together_after_compression_are_read_to_the_end() {
    let (head, tail) = TEXT.split_at(TEXT.len() - 12);
    let gzip = [gzip(head.as_bytes()), gzip(tail.as_bytes())].concat();
    assert_eq!(read(&gzip).unwrap().0.len(), 3);
    // A frame to be skipped first and in between, as `pzstd` writes.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"anyt"].concat();
    let zstd = bytes_of(ZSTD);
    let all = [&skipped[..], &zstd, &skipped, &zstd, &skipped].concat();
    // The header is repeated and passed over.
    assert_eq!(read(&all).unwrap().0.len(), 6);
}

#[test]
fn zeros_behind_a_gzip_file_are_no_damage_and_other_things_are_named() {
    let packed = gzip(TEXT.as_bytes());
    for zeros in [1, 512, 1 << 20] {
        let padded = [&packed[..], &vec![0; zeros]].concat();
        assert_eq!(
            read(&padded).unwrap().0.records().collect::<Vec<_>>(),
            expected()
        );
        // Another file may follow: the header is repeated and passed over.
        let two = [&padded[..], &packed].concat();
        assert_eq!(read(&two).unwrap().0.len(), 6);
    }
    for junk in ["junk", "\0\0junk"] {
        let error = read(&[&packed[..], junk.as_bytes()].concat()).unwrap_err();
        let says = "what gzip packed is whole, but something else follows it";
        assert!(error.message.contains(says), "{error}");
        assert!(error.hint.unwrap().contains("gzip -dc FILE | "));
    }
}

#[test]
fn a_recording_that_was_packed_says_how_to_unpack_it() {
    let recording = b"LODGREC\n\x01\0\0\0";
    let error = read(&gzip(recording)).unwrap_err();
    assert!(
        error
            .message
            .contains("a recording of a live drive, packed by gzip"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("gzip -dc FILE > "));
    let error = read(recording).unwrap_err();
    assert!(
        error
            .message
            .contains("a recording of a live drive, not a trace"),
        "{error}"
    );
}

#[test]
fn damage_is_an_error_at_every_byte_or_changes_nothing() {
    for packed in [gzip(TEXT.as_bytes()), bytes_of(ZSTD)] {
        let mut errors = 0;
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x10;
            match read(&damaged) {
                Ok((trace, _)) => assert_eq!(trace.records().collect::<Vec<_>>(), expected()),
                Err(error) => {
                    errors += 1;
                    // Whatever the damage made of the text; of the first bytes nothing says that it was packed.
                    let said = error.message.ends_with("packed is cut short or damaged");
                    assert!(said || at < 4, "byte {at}: {error}");
                }
            }
            // Cut short: an error, unless all that is missing is the end of the checksum.
            match read(&packed[..at]) {
                Ok((trace, _)) => panic!("{} requests of a file cut at {at}", trace.len()),
                // Of the shortest nothing says that they were packed.
                Err(error) if at > 4 => {
                    assert!(error.message.ends_with("packed is cut short or damaged"));
                    assert!(error.hint.is_some_and(|hint| hint.contains(" -dc FILE | ")));
                }
                Err(_) => {}
            }
        }
        // gzip's header has a time and a system that do not matter.
        assert!(errors + 10 > packed.len(), "{errors} of {}", packed.len());
    }
}

/// An event of blktrace: `struct blk_io_trace`.
struct Event {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    cpu: u32,
    payload: &'static [u8],
}

impl Event {
    fn bytes(&self, is_big: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |number: u64, size: usize| {
            let little = number.to_le_bytes();
            let big = number.to_be_bytes();
            out.extend_from_slice(if is_big {
                &big[8 - size..]
            } else {
                &little[..size]
            });
        };
        put(0x6561_7407, 4);
        put(1, 4);
        put(self.time_ns, 8);
        put(self.sector, 8);
        put(u64::from(self.bytes), 4);
        put(u64::from(self.action), 4);
        put(4201, 4);
        put(8 << 20 | 16, 4);
        put(u64::from(self.cpu), 4);
        put(0, 2);
        put(self.payload.len() as u64, 2);
        out.extend_from_slice(self.payload);
        out
    }
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;

fn events() -> [Event; 7] {
    let event = |time_ns, sector, bytes, action, cpu, payload| Event {
        time_ns,
        sector,
        bytes,
        action,
        cpu,
        payload,
    };
    [
        event(0, 0, 0, NOTIFY | 1, 0, &b"kworker\0"[..]),
        event(1000, 16, 4096, READ | QUEUE, 0, &b""[..]),
        event(1200, 16, 4096, READ | ISSUE, 0, &b""[..]),
        // With a cgroup's identifier in the payload.
        event(
            2000,
            1 << 40,
            512,
            WRITE | FUA | QUEUE | 1 << 8,
            1,
            &b"12345678"[..],
        ),
        event(3000, 8, 65536, DISCARD | QUEUE, 0, &b""[..]),
        event(4000, u64::MAX, 0, WRITE | FLUSH | QUEUE, 0, &b""[..]),
        event(5000, 0, 1024, READ | QUEUE, 0, &b""[..]),
    ]
}

#[test]
fn blktrace_is_read_in_either_order_of_bytes() {
    for is_big in [false, true] {
        let file: Vec<u8> = events()
            .iter()
            .flat_map(|event| event.bytes(is_big))
            .collect();
        let (trace, description) = read(&file).unwrap();
        assert_eq!(description.format, Format::Blkparse);
        assert_eq!(description.device.as_deref(), Some("8,16"));
        let mut forced = record(1_000_000, Op::Write, 512 << 40, 512);
        forced.fua = true;
        let wanted = [
            record(0, Op::Read, 8192, 4096),
            forced,
            record(2_000_000, Op::Trim, 4096, 65536),
            record(3_000_000, Op::Flush, 0, 0),
            record(4_000_000, Op::Read, 0, 1024),
        ];
        assert_eq!(trace.records().collect::<Vec<_>>(), wanted);
        assert!(!noted(&description, &["all events are of CPU"]));
    }
}

#[test]
fn blktrace_of_one_cpu_and_cut_short_says_so() {
    let mut file = events()[1].bytes(false);
    file.extend(&events()[2].bytes(false)[..20]);
    let (trace, description) = read(&gzip(&file)).unwrap();
    assert_eq!(trace.len(), 1);
    assert!(noted(&description, &["all events are of CPU 0", "cat "]));
    assert!(noted(&description, &["cut short"]));
}

#[test]
fn blktrace_that_goes_astray_names_the_event() {
    let mut file = events()[1].bytes(false);
    file.extend([0; 48]);
    let error = read(&file).unwrap_err();
    assert!(error.message.contains("event 2"), "{}", error.message);
}
