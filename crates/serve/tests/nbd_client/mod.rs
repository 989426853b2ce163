//! A client of NBD, written from the protocol's description alone, and a server in a thread of its own.
#![allow(dead_code)]

#[path = "../served/mod.rs"]
mod served;

use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::nbd::Nbd;
use lodger_serve::server::{Address, Exporter, Server};
pub use served::{PATIENCE, Served, spec};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const ZEROES: u16 = 6;
pub const FUA: u16 = 1;

/// How a server is to be.
pub struct How {
    pub speed: f64,
    pub block_bytes: u32,
    pub granted_bytes: u64,
    /// How long it waits for clients.
    pub patience: Duration,
}

impl Default for How {
    fn default() -> Self {
        How {
            speed: 0.0,
            block_bytes: 512,
            granted_bytes: 256 << 10,
            patience: PATIENCE,
        }
    }
}

impl Served {
    pub fn new(name: &str, how: How) -> Self {
        Self::serving(name, how, false)
    }

    /// One with a page of metrics, at `metrics` in its folder.
    pub fn with_metrics(name: &str, how: How) -> Self {
        Self::serving(name, how, true)
    }

    fn serving(name: &str, how: How, has_metrics: bool) -> Self {
        Self::start(name, move |folder, owner| {
            let settings = Settings {
                block_bytes: how.block_bytes,
                ..Settings::default()
            };
            let spec = spec(&[("tier.hmb.integrity", "mac")]);
            let address = Address::Unix(folder.join("drive"));
            let front = Nbd::new(&spec, &settings, how.granted_bytes, &address);
            let mut front = front.expect("a drive to serve");
            front.set_patience(how.patience);
            let mut server = Server::new(front, Speed::new(how.speed).expect("a speed"));
            if has_metrics {
                let at = Address::Unix(folder.join("metrics"));
                server.set_exporter(Exporter::new(&at).expect("a listener"));
            }
            owner.hears();
            server.run(|| owner.wants_the_end()).expect("it serves")
        })
    }
}

/// A reply: whose, how it went, and what it brought.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub cookie: u64,
    pub error: u32,
}

pub struct Client {
    pub stream: UnixStream,
    pub size_bytes: u64,
    pub flags: u16,
}

impl Client {
    /// Connected, and nothing said.
    pub fn connect(served: &Served) -> Self {
        let stream = UnixStream::connect(served.path()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time");
        Client {
            stream,
            size_bytes: 0,
            flags: 0,
        }
    }

    /// Connected, and the export chosen.
    pub fn new(served: &Served) -> Self {
        let mut client = Self::connect(served);
        client.hello(3);
        let mut data = vec![0; 6];
        data[5] = 1;
        data.extend_from_slice(&3u16.to_be_bytes());
        let answers = client.option(7, &data);
        let (kind, export) = &answers[0];
        assert_eq!((*kind, &export[..2]), (3, &[0, 0][..]), "{answers:?}");
        client.size_bytes = u64::from_be_bytes(export[2..10].try_into().unwrap());
        client.flags = u16::from_be_bytes(export[10..12].try_into().unwrap());
        assert_eq!(answers.last().unwrap().0, 1);
        client
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("more to come");
        bytes
    }

    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
            || self
                .stream
                .write_all(&[0; 1])
                .is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    pub fn hello(&mut self, flags: u32) {
        let greeting = self.bytes(18);
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        assert_eq!(&greeting[16..], [0, 3]);
        self.stream.write_all(&flags.to_be_bytes()).unwrap();
    }

    pub fn say_option(&mut self, option: u32, data: &[u8]) {
        let mut message = b"IHAVEOPT".to_vec();
        message.extend_from_slice(&option.to_be_bytes());
        message.extend_from_slice(&(data.len() as u32).to_be_bytes());
        message.extend_from_slice(data);
        self.stream.write_all(&message).unwrap();
    }

    /// The answers to an option, up to the one that is the last.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.say_option(option, data);
        let mut answers = Vec::new();
        loop {
            let head = self.bytes(20);
            assert_eq!(head[..8], 0x3e889045565a9u64.to_be_bytes());
            assert_eq!(head[8..12], option.to_be_bytes());
            let kind = u32::from_be_bytes(head[12..16].try_into().unwrap());
            let length = u32::from_be_bytes(head[16..].try_into().unwrap());
            let data = self.bytes(length as usize);
            answers.push((kind, data));
            if kind == 1 || kind >> 31 == 1 {
                return answers;
            }
        }
    }

    pub fn say(&mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) {
        let mut message = 0x2560_9513u32.to_be_bytes().to_vec();
        message.extend_from_slice(&flags.to_be_bytes());
        message.extend_from_slice(&command.to_be_bytes());
        message.extend_from_slice(&cookie.to_be_bytes());
        message.extend_from_slice(&offset.to_be_bytes());
        message.extend_from_slice(&length.to_be_bytes());
        self.stream.write_all(&message).unwrap();
    }

    pub fn hear(&mut self) -> Reply {
        let head = self.bytes(16);
        assert_eq!(head[..4], 0x6744_6698u32.to_be_bytes());
        Reply {
            error: u32::from_be_bytes(head[4..8].try_into().unwrap()),
            cookie: u64::from_be_bytes(head[8..].try_into().unwrap()),
        }
    }

    /// A request by itself; the error, if not 0.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32) -> Result<(), u32> {
        self.say(command, flags, 7, offset, length);
        let reply = self.hear();
        assert_eq!(reply.cookie, 7);
        match reply.error {
            0 => Ok(()),
            error => Err(error),
        }
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        self.ask(READ, 0, offset, length)?;
        Ok(self.bytes(length as usize))
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> Result<(), u32> {
        self.say(WRITE, flags, 7, offset, data.len() as u32);
        self.stream.write_all(data).unwrap();
        match self.hear().error {
            0 => Ok(()),
            error => Err(error),
        }
    }
}

/// What is answered to a request for a page, head and body.
pub fn ask_page(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // Who says nonsense may find the door shut before all is said.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}
