//! Does a drive do over NBD what the protocol says, for good clients and for bad ones? The client here shares no
//! code with the server.
#![cfg(target_os = "linux")]

mod nbd_client;

use lodger_core::rng::Rng;
use lodger_core::time::{RUN_PS_MAX, S};
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::nbd::Nbd;
use lodger_serve::server::{Address, ServeError, Server};
use nbd_client::{Client, DISCONNECT, FLUSH, FUA, How, READ, Served, TRIM, WRITE, ZEROES, spec};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn name(of: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = (of.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(of.as_bytes());
    data.extend_from_slice(&(infos.len() as u16).to_be_bytes());
    data.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
    data
}

#[test]
fn client_and_server_come_to_terms() {
    let served = Served::new("terms", How::default());
    let mut client = Client::connect(&served);
    client.hello(3);
    let (ack, unsupported, invalid, unknown) = (1, 1 << 31 | 1, 1 << 31 | 3, 1 << 31 | 6);
    let listed = client.option(3, &[]);
    assert_eq!(listed, [(2, vec![0; 4]), (ack, vec![])]);
    let last = |answers: Vec<(u32, Vec<u8>)>| answers.last().map(|answer| answer.0);
    assert_eq!(last(client.option(3, &[1])), Some(invalid));
    // STARTTLS, structured replies, block status, and what nobody knows.
    for option in [5, 8, 9, 10, 77, u32::MAX] {
        assert_eq!(last(client.option(option, &[1, 2, 3])), Some(unsupported));
    }
    assert_eq!(last(client.option(7, &name("other", &[]))), Some(unknown));
    for cut in 0..6 {
        let data = &name("", &[])[..cut];
        assert_eq!(last(client.option(7, data)), Some(invalid), "{cut}");
    }
    assert_eq!(last(client.option(6, &[255; 6])), Some(invalid));
    let answers = client.option(6, &name("", &[3, 1, 2, 99]));
    let kinds: Vec<u8> = answers
        .iter()
        .map(|(_, data)| *data.get(1).unwrap_or(&9))
        .collect();
    assert_eq!(kinds, [0, 1, 2, 3, 9], "{answers:?}");
    assert!(answers[2].1[2..].starts_with(b"Tiny teaching drive"));
    let sizes = [512u32, 4096, 32 << 20].map(u32::to_be_bytes).concat();
    assert_eq!(answers[3].1[2..], sizes);
    assert_eq!(client.option(2, &[]), [(ack, vec![])]);
    assert!(client.is_closed(), "after ABORT");
    for (flags, zeroes) in [(1, 124), (3, 0)] {
        let mut client = Client::connect(&served);
        client.hello(flags);
        client.say_option(1, b"");
        let export = client.bytes(10 + zeroes);
        assert_eq!(export[8..10], [1, 0b0110_1101], "{export:?}");
        assert!(export[10..].iter().all(|byte| *byte == 0));
        assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    }
    let mut client = Client::connect(&served);
    client.hello(3);
    client.say_option(1, b"other");
    assert!(client.is_closed(), "there is no such export");
    let mut client = Client::connect(&served);
    client.hello(1 << 20 | 3);
    assert!(client.is_closed(), "flags that nobody knows");
    let report = served.end();
    assert_eq!(report.clients, 5);
}

#[test]
fn blocks_of_4_kib_are_for_who_asks_for_their_size() {
    let how = How {
        block_bytes: 4096,
        ..How::default()
    };
    let served = Served::new("block", how);
    let mut client = Client::connect(&served);
    client.hello(3);
    client.say_option(1, b"");
    assert!(client.is_closed(), "the oldest option cannot ask for it");
    let mut client = Client::connect(&served);
    client.hello(3);
    let answers = client.option(7, &name("", &[]));
    assert_eq!(answers[0].0, 1 << 31 | 8, "{answers:?}");
    let answers = client.option(7, &name("", &[3]));
    assert_eq!(answers[1].1[2..6], 4096u32.to_be_bytes());
    assert_eq!(client.read(512, 512), Err(22));
    assert_eq!(client.write(0, 4096, &[5; 4096]), Ok(()));
    assert_eq!(client.read(4096, 4096), Ok(vec![5; 4096]));
}

#[test]
fn what_cannot_be_is_refused_and_the_next_request_is_done() {
    let served = Served::new("refused", How::default());
    let mut client = Client::new(&served);
    let end = client.size_bytes;
    let (invalid, no_space, overflow) = (Err(22), Err(28), Err(75));
    assert_eq!(client.ask(READ, 0, end, 512), invalid);
    assert_eq!(client.ask(READ, 0, u64::MAX - 511, 512), invalid);
    assert_eq!(client.ask(READ, 0, 0, 0), invalid);
    assert_eq!(client.ask(READ, 0, 1, 512), invalid);
    assert_eq!(client.ask(READ, 0, 0, 511), invalid);
    assert_eq!(client.ask(READ, 0, 0, 64 << 20), overflow);
    assert_eq!(client.ask(READ, 1 << 9, 0, 512), invalid);
    assert_eq!(client.ask(TRIM, 0, end, 4096), invalid);
    assert_eq!(client.ask(ZEROES, 0, end, 4096), no_space);
    // Without a hole is as good; fast is not promised.
    assert_eq!(client.ask(ZEROES, 1 << 1, 0, 4096), Ok(()));
    assert_eq!(client.ask(ZEROES, 1 << 4, 0, 4096), invalid);
    assert_eq!(client.ask(5, 0, 0, 512), invalid, "CACHE");
    assert_eq!(client.ask(99, 0, 0, 512), invalid);
    // The data of a write comes whether or not it can be had.
    assert_eq!(client.write(0, end, &[1; 1024]), no_space);
    assert_eq!(client.write(0, 3, &[1; 1024]), invalid);
    assert_eq!(client.write(0, 0, &vec![1; 40 << 20]), overflow);
    assert_eq!(client.write(0, 512, &[9; 512]), Ok(()));
    assert_eq!(
        client.read(0, 1536),
        Ok([[0; 512], [9; 512], [0; 512]].concat())
    );
    client.say(DISCONNECT, 0, 0, 0, 0);
    assert!(client.is_closed());
}

/// Places that requests of a client go to, so that those under way at once do not meet.
const LANES: u64 = 6;
const LANE_BYTES: u64 = 2 * MIB;

/// Random requests of several clients, several of each under way at once; what is read is what was written.
#[test]
fn no_byte_is_wrong() {
    let served = Served::new("bytes", How::default());
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&served)).collect();
    assert_eq!(clients[0].flags, 0b1_0110_1101);
    let mut lanes = vec![vec![0u8; LANE_BYTES as usize]; 4 * LANES as usize];
    let mut rng = Rng::new(lodger_testing::seed().unwrap_or(7));
    for _ in 0..lodger_testing::cases(60) {
        for (index, client) in clients.iter_mut().enumerate() {
            let mut reads = Vec::new();
            for lane in 0..LANES {
                let number = index as u64 * LANES + lane;
                let bytes = &mut lanes[number as usize];
                reads.push(say_any(client, &mut rng, lane, number * LANE_BYTES, bytes));
            }
            for _ in 0..LANES {
                let reply = client.hear();
                assert_eq!(reply.error, 0);
                if let Some(expected) = reads[reply.cookie as usize].take() {
                    assert!(client.bytes(expected.len()) == expected, "client {index}");
                }
            }
        }
    }
    // What one has written another reads.
    for (number, lane) in lanes.iter().enumerate() {
        let read = clients[number % 4].read(number as u64 * LANE_BYTES, LANE_BYTES as u32);
        assert!(read.as_ref() == Ok(lane), "lane {number}");
    }
    let report = served.end();
    assert_eq!(report.clients, 4);
    assert!(report.statistics.written_bytes > 0);
    assert!(report.lateness.count() >= report.statistics.commands);
}

/// Sends a random request within a lane; what it is to read, if anything.
fn say_any(
    client: &mut Client,
    rng: &mut Rng,
    cookie: u64,
    base: u64,
    lane: &mut [u8],
) -> Option<Vec<u8>> {
    let command = [READ, WRITE, WRITE, READ, TRIM, ZEROES, FLUSH][rng.below(7) as usize];
    // Of a page that a trim covers in part nothing is promised.
    let unit = if command == TRIM { 4096 } else { 512 };
    let most = [512, 4096, 32 << 10, 1500 << 10][rng.below(4) as usize] / unit;
    let length = u64::from(rng.below(most.max(1) as u32) + 1) * unit;
    let places = (LANE_BYTES - length) / unit + 1;
    let at = u64::from(rng.below(places as u32)) * unit;
    let flags = if rng.below(4) == 0 { FUA } else { 0 };
    let part = &mut lane[at as usize..(at + length) as usize];
    client.say(command, flags, cookie, base + at, length as u32);
    match command {
        WRITE => {
            for (index, byte) in part.iter_mut().enumerate() {
                *byte = (index / 512) as u8 ^ cookie as u8 ^ rng.below(256) as u8;
            }
            client.stream.write_all(part).unwrap();
        }
        TRIM | ZEROES => part.fill(0),
        READ => return Some(part.to_vec()),
        _ => {}
    }
    None
}

/// Tells a large request's cookie from a small one's.
const LARGE: u64 = 1 << 32;

/// Requests beyond what the server sets aside wait for their turn; none is lost.
#[test]
fn more_than_fits_at_once_waits() {
    let served = Served::new("more", How::default());
    let mut client = Client::new(&served);
    let mut writer = client.stream.try_clone().expect("another end");
    let each = 8 * MIB;
    let sends = std::thread::spawn(move || {
        for cookie in 0..16u64 {
            let mut message = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
            message.extend_from_slice(&(LARGE | cookie).to_be_bytes());
            message.extend_from_slice(&(cookie % 4 * each).to_be_bytes());
            message.extend_from_slice(&(each as u32).to_be_bytes());
            writer.write_all(&message).unwrap();
        }
        // And many at once that are small.
        for cookie in 0..5000u64 {
            let mut message = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
            message.extend_from_slice(&cookie.to_be_bytes());
            message.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
            writer.write_all(&message).unwrap();
        }
    });
    // The server cannot send yet, and does not take more than it has room for.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..5016 {
        let reply = client.hear();
        assert_eq!(reply.error, 0);
        let is_large = reply.cookie & LARGE != 0;
        client.bytes(if is_large { each as usize } else { 512 });
    }
    sends.join().unwrap();
}

/// Clients that say nonsense, half of something, or nothing, are let go, and hold nobody up.
#[test]
fn bad_clients_are_let_go() {
    let how = How {
        patience: Duration::from_millis(400),
        ..How::default()
    };
    let served = Served::new("bad", how);
    let mut good = Client::new(&served);
    assert_eq!(good.write(0, 0, &[3; 4096]), Ok(()));
    let mut gone: Vec<Client> = Vec::new();
    let mut new = |act: &dyn Fn(&mut Client)| {
        let mut client = Client::new(&served);
        act(&mut client);
        gone.push(client);
    };
    // Half a request, half of a write's data, data that was refused and never comes.
    new(&|client| {
        client
            .stream
            .write_all(&[0x25, 0x60, 0x95, 0x13, 0])
            .unwrap()
    });
    new(&|client| client.say(WRITE, 0, 1, 0, 32 << 20));
    new(&|client| client.say(WRITE, 0, 1, 3, u32::MAX));
    // No request at all.
    new(&|client| client.stream.write_all(&[0x26; 28]).unwrap());
    // Who asks and does not listen.
    new(&|client| client.say(READ, 0, 1, 0, 16 << 20));
    let silent = Client::connect(&served);
    let mut half = Client::connect(&served);
    half.hello(3);
    half.stream.write_all(b"IHAVEOPT\0\0").unwrap();
    let mut long = Client::connect(&served);
    long.hello(3);
    long.stream
        .write_all(b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff")
        .unwrap();
    let mut chatty = Client::connect(&served);
    chatty.hello(3);
    gone.extend([silent, half, long]);
    let start = Instant::now();
    // Options one after the other do not buy time.
    while start.elapsed() < Duration::from_secs(20) {
        if chatty
            .stream
            .write_all(b"IHAVEOPT\0\0\0\x03\0\0\0\0")
            .is_err()
            || !matches!(chatty.stream.read(&mut [0; 64]), Ok(1..))
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(start.elapsed() < Duration::from_secs(15), "it may talk on");
    for client in &mut gone {
        let mut rest = Vec::new();
        let end = client.stream.read_to_end(&mut rest);
        assert!(
            end.is_ok()
                || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    // Who has said nothing wrong, and nothing at all meanwhile, is still there.
    assert_eq!(good.read(0, 4096), Ok(vec![3; 4096]));
    assert_eq!(served.end().clients, 10);
}

#[test]
fn noise_is_survived() {
    let served = Served::new("noise", How::default());
    let mut rng = Rng::new(lodger_testing::seed().unwrap_or(3));
    for case in 0..lodger_testing::cases(200) {
        let mut client = if case % 2 == 0 {
            let mut client = Client::connect(&served);
            client.hello(3);
            client
        } else {
            Client::new(&served)
        };
        for _ in 0..rng.below(20) {
            let mut noise: Vec<u8> = (0..rng.below(80)).map(|_| rng.below(256) as u8).collect();
            match rng.below(3) {
                0 => noise.splice(0..0, *b"IHAVEOPT\0\0\0").for_each(drop),
                1 => noise
                    .splice(0..0, [0x25, 0x60, 0x95, 0x13, 0, 0, 0])
                    .for_each(drop),
                _ => {}
            }
            if client.stream.write_all(&noise).is_err() {
                break;
            }
        }
    }
    let mut good = Client::new(&served);
    assert_eq!(good.ask(ZEROES, 0, 0, 1 << 20), Ok(()));
    assert_eq!(good.read(0, 4096), Ok(vec![0; 4096]));
}

#[test]
fn more_clients_than_places_are_sent_away() {
    let served = Served::new("places", How::default());
    let mut clients: Vec<Client> = (0..16).map(|_| Client::new(&served)).collect();
    let mut one_more = Client::connect(&served);
    assert!(one_more.is_closed());
    for client in &mut clients {
        assert_eq!(client.ask(FLUSH, 0, 0, 0), Ok(()));
    }
    clients.truncate(15);
    let start = Instant::now();
    // A place is free as soon as the server has seen that it is.
    loop {
        let mut client = Client::connect(&served);
        if client
            .stream
            .read(&mut [0; 1])
            .is_ok_and(|bytes| bytes == 1)
        {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

/// A request takes as long as the model says, however fast this machine is.
#[test]
fn replies_come_at_the_models_time() {
    let how = How {
        speed: 1.0,
        ..How::default()
    };
    let served = Served::new("time", how);
    let mut client = Client::new(&served);
    for page in 0..64 {
        assert_eq!(client.write(0, page * 4096, &[1; 4096]), Ok(()));
    }
    assert_eq!(client.ask(FLUSH, 0, 0, 0), Ok(()));
    let read_ns = nbd_client::spec(&[]).nand.read_ps[0] / 1000;
    for page in 0..64 {
        let start = Instant::now();
        assert_eq!(client.read(page * 4096, 4096), Ok(vec![1; 4096]));
        let took_ns = start.elapsed().as_nanos() as u64;
        assert!(
            took_ns >= read_ns,
            "{took_ns} ns for a read of {read_ns} ns"
        );
    }
    assert!(served.end().lateness.count() >= 129);
}

#[test]
fn a_socket_is_its_owners_alone() {
    let served = Served::new("owner", How::default());
    let mode = std::fs::metadata(served.path())
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let path = served.path();
    served.end();
    assert!(!path.exists());
}

/// How many of so many clients get in at once, where nobody has accepted any yet.
fn come_in(path: &std::path::Path, clients: usize) -> usize {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let address = SocketAddrUnix::new(path).expect("an address");
    let come = || {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::NONBLOCK, None);
        let socket = socket.expect("a socket");
        rustix::net::connect(&socket, &address)
            .is_ok()
            .then_some(socket)
    };
    // All of them stay until the last has come.
    let sockets: Vec<_> = (0..clients).filter_map(|_| come()).collect();
    sockets.len()
}

/// Of 16 clients that came quickly, and did not wait, 5 got in: so long was the queue before the socket. The null: a backlog of 4.
#[test]
fn as_many_clients_as_there_may_be_get_in_before_the_first_is_accepted() {
    let folder = std::env::temp_dir().join(format!("lodger-backlog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let tiny = include_str!("../../../drives/tiny.toml");
    let spec = lodger_core::spec::parse(tiny, "tiny.toml", &[], &|_| None);
    let spec = spec.expect("a drive").spec;
    let address = lodger_serve::server::Address::Unix(folder.join("nbd"));
    let settings = lodger_serve::controller::Settings::default();
    let nbd = lodger_serve::nbd::Nbd::new(&spec, &settings, 0, &address).expect("a drive");
    let control = lodger_serve::server::Control::new(&folder.join("ctl"), false).expect("a socket");
    assert_eq!(come_in(&folder.join("nbd"), 16), 16);
    assert_eq!(come_in(&folder.join("ctl"), 8), 8);
    drop((nbd, control));
    let _ = std::fs::remove_dir_all(&folder);
}

/// Its clock stood still, with whoever waited for it, and recordings of it could not be read.
#[test]
fn a_drive_whose_time_is_over_is_switched_off() {
    let address = std::env::temp_dir().join(format!("lodger-time-is-over-{}", std::process::id()));
    let (spec, settings, address) = (spec(&[]), Settings::default(), Address::Unix(address));
    let front = Nbd::new(&spec, &settings, 0, &address).expect("a drive to serve");
    let mut server = Server::new(front, Speed::new(1e6).expect("a speed"));
    server.controller_mut().poll(RUN_PS_MAX - S);
    let (began, mut warnings) = (Instant::now(), Vec::new());
    let stops = || began.elapsed() > Duration::from_secs(20);
    let report = server.run_and_warn(stops, |text| warnings.push(text.to_owned()));
    let ended = report.expect("it serves").went_on();
    assert!(matches!(ended, Err(ServeError::TimeIsOver)), "{ended:?}");
    assert!(warnings[0].contains("time ends in 0 s"), "{warnings:?}");
}
