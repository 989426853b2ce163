//! NBD servers: whatever they reply, a client ends.

use lodger_probe::target::nbd::{Address, NbdTarget};
use lodger_probe::{Io, Target};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// No wait for a server that has said all it has to say.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A server that says what it is given, whatever it is asked, and hangs up.
struct Parrot {
    path: String,
    says: std::sync::Mutex<Sender<Vec<u8>>>,
}

fn parrot() -> &'static Parrot {
    static PARROT: OnceLock<Parrot> = OnceLock::new();
    PARROT.get_or_init(|| {
        let name = format!("lodger-fuzz-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        let (sender, receiver) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for bytes in receiver {
                let Ok((mut socket, _)) = listener.accept() else {
                    break;
                };
                let _ = socket.set_write_timeout(Some(TIMEOUT));
                let _ = socket.set_read_timeout(Some(TIMEOUT));
                let _ = socket.write_all(&bytes);
                let _ = socket.shutdown(Shutdown::Write);
                // What it asks is read, so that it is not broken off while it speaks.
                let _ = std::io::copy(&mut Read::by_ref(&mut socket), &mut std::io::sink());
            }
        });
        Parrot {
            path: path.display().to_string(),
            says: std::sync::Mutex::new(sender),
        }
    })
}

/// Two bytes that choose what is asked, and all that the server says.
pub fn server(data: &[u8]) {
    let [depth, choice, said @ ..] = data else {
        return;
    };
    if let Ok(text) = std::str::from_utf8(said) {
        let _ = Address::parse(text);
    }
    let parrot = parrot();
    let says = parrot.says.lock().expect("nobody panics with it");
    says.send(said.to_vec()).expect("the server listens");
    let address = format!("unix:{}", parrot.path);
    let Ok(mut target) = NbdTarget::open_within(&address, false, TIMEOUT) else {
        return;
    };
    if choice & 1 == 1 {
        target = target.for_writing();
    }
    let ios: Vec<Io> = (0..u64::from(choice >> 4))
        .map(|i| match choice & 2 {
            0 => Io::read(i * 8192, 4096),
            _ => Io::write(i * 8192, 4096),
        })
        .collect();
    let mut samples = Vec::new();
    let _ = target.run(&ios, u32::from(*depth), &mut samples);
    let _ = target.flush();
    let _ = target.deallocate(0, 1 << 20);
}
