//! The NBD target against a small server in this process: an honest one, and every way of breaking
//! the protocol that we could think of. Nothing may panic, and nothing may wait forever.
#![cfg(unix)]

use lodger_probe::target::nbd::NbdTarget;
use lodger_probe::{HmbState, HmbSwitch, Io, Target, TargetError, Transport};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: u64 = 4 << 20;
/// Waits in these tests are this long; no test may take longer than a few of them.
const TIMEOUT: Duration = Duration::from_millis(300);

/// What a server does wrong, and at which request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Closes the connection within the data of a reply.
    Vanishes(u32),
    /// Takes requests and answers no more, but keeps the connection.
    Silent(u32),
    /// A reply to another request.
    Cookie(u32),
    /// Answers the same request twice.
    Twice(u32),
    /// Something that is no reply.
    Magic(u32),
    Structured(u32),
    /// An honest error.
    Refuses(u32),
    /// One byte now and then.
    Dribbles,
}

#[derive(Clone)]
struct Server {
    fault: Fault,
    size: u64,
    flags: u16,
    blocks: Option<(u32, u32, u32)>,
    disk: Arc<Mutex<Vec<u8>>>,
    /// Commands seen, by number.
    seen: Arc<Mutex<Vec<u16>>>,
}

impl Server {
    fn new(fault: Fault) -> Self {
        Server {
            fault,
            size: SIZE,
            // Has flags, flush, trim.
            flags: 1 | 4 | 32,
            blocks: None,
            disk: Arc::new(Mutex::new(vec![7; SIZE as usize])),
            seen: Arc::default(),
        }
    }

    fn handshake<S: Read + Write>(&self, stream: &mut S) -> std::io::Result<String> {
        stream.write_all(b"NBDMAGICIHAVEOPT\x00\x03")?;
        let mut head = [0; 20];
        stream.read_exact(&mut head)?;
        assert_eq!(head[..4], [0, 0, 0, 3], "client flags");
        assert_eq!(&head[4..12], b"IHAVEOPT");
        assert_eq!(head[12..16], [0, 0, 0, 7], "NBD_OPT_GO");
        let length = u32::from_be_bytes(head[16..].try_into().unwrap());
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        let name = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
        assert_eq!(
            data.len(),
            4 + name + 4,
            "one piece of information is asked for"
        );
        let export = String::from_utf8(data[4..4 + name].to_vec()).unwrap();
        if export == "missing" {
            stream.write_all(&option_reply(0x8000_0006, b"no\x1bsuch"))?;
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let mut info = vec![0, 0];
        info.extend(self.size.to_be_bytes());
        info.extend(self.flags.to_be_bytes());
        stream.write_all(&option_reply(3, &info))?;
        if let Some((least, preferred, most)) = self.blocks {
            let mut info = vec![0, 3];
            for bytes in [least, preferred, most] {
                info.extend(bytes.to_be_bytes());
            }
            stream.write_all(&option_reply(3, &info))?;
        }
        stream.write_all(&option_reply(1, b""))?;
        Ok(export)
    }

    fn serve<S: Read + Write>(&self, stream: &mut S) -> std::io::Result<()> {
        self.handshake(stream)?;
        for number in 0.. {
            let mut head = [0; 28];
            stream.read_exact(&mut head)?;
            assert_eq!(head[..4], 0x2560_9513u32.to_be_bytes());
            let kind = u16::from_be_bytes([head[6], head[7]]);
            let mut cookie = u64::from_be_bytes(head[8..16].try_into().unwrap());
            let offset = u64::from_be_bytes(head[16..24].try_into().unwrap()) as usize;
            let length = u32::from_be_bytes(head[24..].try_into().unwrap()) as usize;
            self.seen.lock().unwrap().push(kind);
            let mut disk = self.disk.lock().unwrap();
            let mut data = Vec::new();
            match kind {
                0 => data.extend(&disk[offset..offset + length]),
                1 => stream.read_exact(&mut disk[offset..offset + length])?,
                2 => return Ok(()),
                4 => disk[offset..offset + length].fill(0),
                _ => assert_eq!((offset, length), (0, 0), "flush"),
            }
            drop(disk);
            let (mut magic, mut error) = (0x6744_6698u32, 0u32);
            match self.fault {
                Fault::Vanishes(at) if at == number => {
                    let mut reply = reply(magic, 0, cookie);
                    reply.extend(&data[..data.len() / 2]);
                    return stream.write_all(&reply);
                }
                Fault::Silent(at) if at <= number => continue,
                Fault::Cookie(at) if at == number => cookie += 1000,
                Fault::Magic(at) if at == number => magic = 7,
                Fault::Structured(at) if at == number => magic = 0x668e_33ef,
                Fault::Refuses(at) if at == number => {
                    error = 5;
                    data.clear();
                }
                Fault::Twice(at) if at == number => {
                    let mut first = reply(magic, 0, cookie);
                    first.extend(&data);
                    stream.write_all(&first)?;
                }
                _ => {}
            }
            let mut reply = reply(magic, error, cookie);
            reply.extend(data);
            if self.fault == Fault::Dribbles {
                for byte in reply {
                    stream.write_all(&[byte])?;
                    std::thread::sleep(TIMEOUT / 6);
                }
            } else {
                stream.write_all(&reply)?;
            }
        }
        Ok(())
    }

    /// Serves one connection over a socket of this machine.
    fn start(self) -> Running {
        Running::start(move |mut stream| {
            let _ = self.serve(&mut stream);
        })
    }
}

fn reply(magic: u32, error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = magic.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes
}

fn option_reply(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
    bytes.extend(7u32.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

struct Running {
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(serve: impl FnOnce(std::os::unix::net::UnixStream) + Send + 'static) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lodger-nbd-{}-{number}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        Running {
            path,
            thread: Some(thread),
        }
    }

    fn text(&self) -> String {
        format!("unix:{}:disk", self.path.display())
    }

    fn open(&self, write: bool) -> Result<NbdTarget, TargetError> {
        NbdTarget::open_within(&self.text(), write, TIMEOUT)
    }

    /// Waits for the server's end, which fails the test if the server found something wrong.
    fn end(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn reads(count: u64) -> Vec<Io> {
    (0..count).map(|i| Io::read(i * 4096, 4096)).collect()
}

#[test]
fn an_honest_server_serves_everything() {
    let server = Server::new(Fault::None);
    let (disk, seen) = (server.disk.clone(), server.seen.clone());
    let running = server.start();
    let mut target = running.open(true).unwrap();
    let about = target.describe().clone();
    assert_eq!(about.capacity_bytes, SIZE);
    assert_eq!(
        (about.block_bytes, about.transfer_bytes_max),
        (512, 2 << 20),
        "it sets no limit: what experiments ask for at most"
    );
    assert_eq!(about.serial, "disk");
    assert_eq!(
        (about.no_flush, about.no_deallocate, about.no_write),
        (None, None, None)
    );
    assert_eq!(about.transport, Transport::Layered);
    assert!(matches!(about.hmb, HmbSwitch::Unavailable(_)));
    let notes = about.notes.join("\n");
    assert!(
        notes.contains("page cache") && notes.contains("admin"),
        "{notes}"
    );
    let mut samples = Vec::new();
    for queue_depth in [1, 2, 7, 64, 5000] {
        target.run(&reads(1000), queue_depth, &mut samples).unwrap();
        assert_eq!(samples.len(), 1000);
        assert!(samples.iter().all(|sample| sample.latency_ns > 0));
        // Never more in flight than allowed.
        for (i, sample) in samples.iter().enumerate() {
            let before = &samples[..i];
            let flying = before
                .iter()
                .filter(|s| s.completed_ns() > sample.issued_ns);
            assert!(flying.count() < queue_depth as usize, "{queue_depth}, {i}");
        }
    }
    // Both directions full of data at once.
    let mut mixed = Vec::new();
    for i in 0..24 {
        mixed.push(Io::write((i % 16) * 65536, 65536));
        mixed.push(Io::read(2 << 20, 131_072));
    }
    target.run(&mixed, 32, &mut samples).unwrap();
    target.run(&mixed[..1], 1, &mut samples).unwrap();
    assert!(target.flush().unwrap() > 0);
    target.deallocate(3 << 20, 1 << 20).unwrap();
    assert!(target.set_hmb(HmbState::Off).is_err());
    drop(target);
    running.end();
    let disk = disk.lock().unwrap();
    assert!(disk[..1 << 20].iter().any(|byte| *byte != 7));
    assert!(disk[2 << 20..3 << 20].iter().all(|byte| *byte == 7));
    assert!(disk[3 << 20..].iter().all(|byte| *byte == 0));
    assert_eq!(*seen.lock().unwrap().last().unwrap(), 2, "it says goodbye");
}

#[test]
fn over_tcp_with_an_export_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::new(Fault::None);
    let thread = std::thread::spawn(move || server.serve(&mut listener.accept().unwrap().0));
    let text = format!("127.0.0.1:{port}/disk/1");
    let mut target = NbdTarget::open_within(&text, false, TIMEOUT).unwrap();
    assert_eq!(target.describe().transport, Transport::Network);
    assert_eq!(target.describe().serial, "disk/1");
    target.run(&reads(100), 8, &mut Vec::new()).unwrap();
    drop(target);
    thread.join().unwrap().unwrap();
}

#[test]
fn without_consent_no_write_and_no_trim_is_sent() {
    let server = Server::new(Fault::None);
    let (disk, seen) = (server.disk.clone(), server.seen.clone());
    let running = server.start();
    let mut target = running.open(false).unwrap();
    let write = [Io::write(0, 4096)];
    assert!(target.run(&write, 1, &mut Vec::new()).is_err());
    assert!(target.deallocate(0, 4096).is_err());
    assert!(
        target
            .run(&[Io::read(SIZE, 4096)], 1, &mut Vec::new())
            .is_err()
    );
    assert!(
        target
            .run(&[Io::read(u64::MAX, 4096)], 1, &mut Vec::new())
            .is_err()
    );
    target.run(&reads(3), 1, &mut Vec::new()).unwrap();
    drop(target);
    running.end();
    assert_eq!(*seen.lock().unwrap(), [0, 0, 0, 2]);
    assert!(disk.lock().unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_server_that_breaks_off_is_told_apart_and_never_waited_for() {
    for (fault, said) in [
        (Fault::Vanishes(5), "closed the connection"),
        (Fault::Silent(5), "did not answer within 0.3 s"),
        (Fault::Silent(0), "did not answer within 0.3 s"),
        (Fault::Cookie(5), "a reply to what was not asked"),
        (Fault::Twice(5), "a reply to what was not asked"),
        (Fault::Magic(5), "out of step"),
        (Fault::Structured(5), "structured reply"),
        (Fault::Dribbles, "did not answer within 0.3 s"),
    ] {
        for queue_depth in [1, 16] {
            let running = Server::new(fault).start();
            let mut target = running.open(false).unwrap();
            let began = Instant::now();
            let result = target.run(&reads(200), queue_depth, &mut Vec::new());
            let error = result.unwrap_err();
            assert!(matches!(error, TargetError::Gone(_)), "{fault:?}: {error}");
            assert!(error.to_string().contains(said), "{fault:?}: {error}");
            // It is not asked again: the same answer, at once.
            let again = target.run(&reads(1), 1, &mut Vec::new()).unwrap_err();
            assert_eq!(again, error);
            assert!(target.flush().is_err());
            assert!(began.elapsed() < 4 * TIMEOUT, "{fault:?}");
        }
    }
}

#[test]
fn an_honest_error_ends_the_batch_but_not_the_connection() {
    for queue_depth in [1, 8] {
        let running = Server::new(Fault::Refuses(20)).start();
        let mut target = running.open(false).unwrap();
        let error = target.run(&reads(200), queue_depth, &mut Vec::new());
        let expected = TargetError::Io {
            what: "read",
            offset: 20 * 4096,
            bytes: 4096,
            reason: "input/output error".to_owned(),
        };
        assert_eq!(error, Err(expected));
        target
            .run(&reads(200), queue_depth, &mut Vec::new())
            .unwrap();
        drop(target);
        running.end();
    }
}

fn refused(server: Server) -> String {
    let running = server.start();
    running.open(false).unwrap_err().to_string()
}

#[test]
fn impossible_sizes_are_refused() {
    let sized = |size| Server {
        size,
        ..Server::new(Fault::None)
    };
    assert!(refused(sized(u64::MAX)).contains("18446744073709551615 bytes"));
    assert!(refused(sized(0)).contains("smaller than 1 MiB"));
    let blocks = |least, preferred, most| Server {
        blocks: Some((least, preferred, most)),
        ..Server::new(Fault::None)
    };
    for (least, preferred, most) in [
        (0, 0, 0),
        (3, 3, 3),
        (1 << 20, 1 << 20, 1 << 20),
        (4096, 512, 8192),
        (512, 512, 700),
    ] {
        let said = refused(blocks(least, preferred, most));
        assert!(said.contains("impossible block sizes"), "{least}: {said}");
    }
    assert!(refused(blocks(1, 512, 2048)).contains("no more than 2048 bytes"));
    let running = blocks(4096, 4096, 32768).start();
    let target = running.open(false).unwrap();
    let about = target.describe();
    assert_eq!((about.block_bytes, about.transfer_bytes_max), (4096, 32768));
    let notes = about.notes.join("\n");
    assert!(notes.contains("above 32 KiB go in parts"), "{notes}");
}

#[test]
fn what_is_no_nbd_server_is_said() {
    let greet = |bytes: Vec<u8>| {
        let running = Running::start(move |mut stream| {
            let _ = stream.write_all(&bytes);
            let _ = stream.read(&mut [0; 256]);
            std::thread::sleep(2 * TIMEOUT);
        });
        running.open(false).unwrap_err().to_string()
    };
    let hello = |more: &[u8]| [&b"NBDMAGICIHAVEOPT\x00\x03"[..], more].concat();
    for (bytes, said) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), "no NBD server"),
        (
            b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\x00\x00".to_vec(),
            "old handshake",
        ),
        (b"NBDMAGICIHAVEOPT\x00\x02".to_vec(), "fixed newstyle"),
        (b"NBDMAGIC".to_vec(), "did not answer"),
        (hello(&option_reply(1, b"")), "how large"),
        (hello(&option_reply(9, b"")), "type 9"),
        (hello(&option_reply(3, b"\x00")), "information of 1 bytes"),
        (
            hello(&option_reply(3, b"\x00\x00\x00")),
            "information of 3 bytes",
        ),
        (hello(&[0; 20]), "is not one"),
        (
            hello(&option_reply(3, b"\x00\x09").repeat(40)),
            "come to an end",
        ),
        (hello(&option_reply(0x8000_0005, b"")), "TLS"),
        (
            hello(&[&option_reply(3, b"")[..16], &[255; 4]].concat()),
            "4294967295 bytes",
        ),
    ] {
        let found = greet(bytes);
        assert!(found.contains(said), "{found} has no `{said}`");
    }
    let running = Server::new(Fault::None).start();
    let text = running.text().replace(":disk", ":missing");
    let error = NbdTarget::open_within(&text, false, TIMEOUT)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(r"no such export (`no\u{1b}such`)"),
        "{error}"
    );
    let error = NbdTarget::open_within("unix:/nowhere.sock", false, TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

proptest! {
    #![proptest_config(lodger_testing::config(200))]
    /// Bytes of any kind, at any point of the conversation.
    #[test]
    fn no_bytes_make_it_panic_or_wait(
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        part in 0usize..4,
        queue_depth in 1u32..4,
    ) {
        let mut size = vec![0, 0];
        size.extend(SIZE.to_be_bytes());
        size.extend([0, 1]);
        let whole = [
            b"NBDMAGICIHAVEOPT\x00\x03".to_vec(),
            option_reply(3, &size),
            option_reply(1, b""),
        ];
        let mut bytes = whole[..part].concat();
        bytes.extend(noise);
        let running = Running::start(move |mut stream| {
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        if let Ok(mut target) = running.open(false) {
            prop_assert!(target.run(&reads(2), queue_depth, &mut Vec::new()).is_err());
        }
        running.end();
    }
}
