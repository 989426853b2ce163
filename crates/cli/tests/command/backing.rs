//! Does a drive in a file outlive `kill -9` of the command that serves it, at any instant? And is what it cannot be
//! in refused, and left as it is? What a stop of the machine leaves is tested in `lodger-serve`.

// The naive drive that holds itself beside a served one.
#[path = "../../../serve/tests/kept/mod.rs"]
mod kept;

use crate::common::Sandbox;
use kept::{Asked, Naive, block_bytes};
use lodger_core::rng::Rng;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Blocks of the drive: few, so that it collects garbage.
const BLOCKS: u64 = 24 << 11;
const DEPTH: usize = 12;
const SMALL: [&str; 10] = [
    "--set",
    "capacity=24MiB",
    "--set",
    "nand.pages_per_block=24",
    "--set",
    "ftl.slc_superblocks=0",
    "--set",
    "ftl.overprovisioning=0.5",
    "--speed",
    "0",
];

fn serve(sandbox: &Sandbox) -> Child {
    let place = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:drive",
        "--backing",
        "flash",
    ];
    let _ = std::fs::remove_file(sandbox.dir.join("drive"));
    let mut command = sandbox.command(&[&place[..], &SMALL].concat());
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("the command")
}

/// A client of NBD.
struct Client(UnixStream);

impl Client {
    fn new(sandbox: &Sandbox) -> Self {
        let since = Instant::now();
        let stream = loop {
            match UnixStream::connect(sandbox.dir.join("drive")) {
                Ok(stream) => break stream,
                Err(_) => assert!(since.elapsed() < PATIENCE, "nobody serves"),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let mut client = Client(stream);
        let greeting = client.bytes(18).expect("a greeting");
        assert_eq!(&greeting[8..16], b"IHAVEOPT");
        // Without zeros at the end; the export without a name.
        let option = [
            &3u32.to_be_bytes()[..],
            b"IHAVEOPT",
            &1u32.to_be_bytes(),
            &[0; 4],
        ];
        client.0.write_all(&option.concat()).expect("it listens");
        let export = client.bytes(10).expect("an export");
        assert_eq!(export[..8], (BLOCKS * 512).to_be_bytes());
        client
    }

    fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn ask(&mut self, cookie: u64, asked: &Asked) -> io::Result<()> {
        let (command, flags, lba, blocks) = match asked {
            Asked::Read { lba, blocks } => (0, 0, *lba, *blocks),
            Asked::Write {
                lba, blocks, fua, ..
            } => (1, u16::from(*fua), *lba, *blocks),
            Asked::Flush(_) => (3u16, 0, 0, 0),
            Asked::Deallocate { lba, blocks, .. } => (4, 0, *lba, *blocks),
        };
        let mut message = 0x2560_9513u32.to_be_bytes().to_vec();
        message.extend(flags.to_be_bytes());
        message.extend(command.to_be_bytes());
        message.extend(cookie.to_be_bytes());
        message.extend((lba * 512).to_be_bytes());
        message.extend((blocks * 512).to_be_bytes());
        if let Asked::Write { version, .. } = asked {
            let blocks = lba..lba + u64::from(blocks);
            message.extend(blocks.flat_map(|lba| block_bytes(lba, *version)));
        }
        self.0.write_all(&message)
    }

    /// The number of a request that is done, without an error.
    fn done(&mut self) -> io::Result<u64> {
        let head = self.bytes(16)?;
        assert_eq!(head[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "an error");
        Ok(u64::from_be_bytes(head[8..].try_into().expect("8 bytes")))
    }

    fn read_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        for lba in (0..BLOCKS).step_by(1 << 10) {
            let blocks = 1 << 10;
            self.ask(1, &Asked::Read { lba, blocks })
                .expect("it listens");
            self.done().expect("it answers");
            all.extend(self.bytes(512 << 10).expect("data"));
        }
        all
    }
}

/// Asks for more and more until nobody answers, or so many have been asked for.
fn work(client: &mut Client, naive: &mut Naive, commands: u64) -> Result<(), String> {
    let mut under_way: HashMap<u64, Asked> = HashMap::new();
    for cookie in 0.. {
        if cookie < commands
            && let Some(asked) = naive.choose()
        {
            // It may get there even if that fails.
            naive.submit(&asked);
            if client.ask(cookie, &asked).is_err() {
                return Ok(());
            }
            under_way.insert(cookie, asked);
        }
        if under_way.is_empty() && cookie >= commands {
            return Ok(());
        }
        if under_way.len() < DEPTH && cookie < commands {
            continue;
        }
        let Ok(done) = client.done() else {
            return Ok(());
        };
        let asked = under_way.remove(&done).expect("it was asked for");
        let read = match &asked {
            Asked::Read { blocks, .. } => client.bytes(*blocks as usize * 512),
            _ => Ok(Vec::new()),
        };
        let Ok(read) = read else { return Ok(()) };
        naive.complete(&asked, &read)?;
    }
    Ok(())
}

fn check(client: &mut Client, naive: &mut Naive) -> Result<u64, String> {
    let all = client.read_all();
    naive.restart(|lba| {
        all[lba as usize * 512..][..512]
            .try_into()
            .expect("a block")
    })
}

#[test]
fn what_was_flushed_outlives_kill_9() {
    let mut lost = 0;
    for seed in 0..u64::from(lodger_testing::cases(2)) {
        let sandbox = Sandbox::new();
        let mut naive = Naive::new(BLOCKS, seed);
        let mut rng = Rng::new(seed);
        for life in 0..8 {
            let mut child = serve(&sandbox);
            let mut client = Client::new(&sandbox);
            let there = check(&mut client, &mut naive);
            lost += there.unwrap_or_else(|what| panic!("seed {seed}, life {life}: {what}"));
            let after = Duration::from_micros(u64::from(rng.below(150_000)));
            let pid = child.id().to_string();
            let killer = std::thread::spawn(move || {
                std::thread::sleep(after);
                let killed = Command::new("kill").args(["-9", &pid]).status();
                assert!(killed.expect("kill").success());
            });
            work(&mut client, &mut naive, u64::MAX).unwrap_or_else(|what| panic!("{what}"));
            killer.join().expect("it was killed");
            child.wait().expect("it has ended");
        }
    }
    println!("{lost} blocks had been written and not flushed");
    assert!(lost > 0, "a flush would be for nothing");
}

#[test]
fn ctrl_c_leaves_a_drive_that_has_lost_nothing() {
    let sandbox = Sandbox::new();
    let mut naive = Naive::new(BLOCKS, 1);
    for _ in 0..3 {
        let mut child = serve(&sandbox);
        let mut client = Client::new(&sandbox);
        assert_eq!(check(&mut client, &mut naive), Ok(0));
        work(&mut client, &mut naive, 300).expect("what is read was written");
        // Not even a farewell.
        let pid = child.id().to_string();
        let told = Command::new("kill").args(["-INT", &pid]).status();
        assert!(told.expect("kill").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        let mut text = String::new();
        let stderr = child.stderr.as_mut().expect("its stderr");
        stderr.read_to_string(&mut text).expect("text");
        assert!(!text.contains("was not switched off"), "{text}");
    }
    let file = std::fs::metadata(sandbox.dir.join("flash")).expect("the file");
    assert_eq!(file.mode() & 0o777, 0o600, "its owner's alone");
    assert!(file.blocks() * 512 < file.len() / 4, "it is sparse");
}

/// A drive in `path` is refused, with these words.
fn refused(sandbox: &Sandbox, path: &str, more: &[&str], words: &str) {
    let place = ["serve", "--drive", "tiny", "--nbd", "unix:other"];
    let outcome = sandbox.run(&[&place[..], &["--backing", path], more].concat());
    assert_eq!(outcome.code, Some(2), "{path}: {}", outcome.stderr);
    for word in [words, "hint:"] {
        assert!(outcome.stderr.contains(word), "{path}: {}", outcome.stderr);
    }
}

#[test]
fn a_drive_in_a_file_is_refused_to_others() {
    let sandbox = Sandbox::new();
    let mut child = serve(&sandbox);
    drop(Client::new(&sandbox));
    let refused = |more: &[&str], words: &str| refused(&sandbox, "flash", more, words);
    let with = |more: &[&'static str]| [&SMALL[..], more].concat();
    refused(&SMALL, "`--backing flash`: another server has it in use");
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    refused(&[], "its drive has a capacity of");
    refused(&with(&["--seed", "3"]), "seed 0");
    refused(&with(&["--set", "nand.read=99us"]), "--set");
    refused(&with(&["--block", "4096"]), "`--block` must be 512");
    let divided = with(&["--namespaces", "8MiB"]);
    refused(&divided, "the drive in the file has one with all of it");
    let written = with(&["--precondition", "random"]);
    refused(&written, "`--precondition` goes without `--backing`");
    let record = with(&["--record", "flash.rec"]);
    refused(&record, "`--record` begins with a new");
}

#[test]
fn a_server_that_cannot_start_leaves_no_file_behind_and_none_of_the_users_is_gone() {
    let sandbox = Sandbox::new();
    let fails = ["--nbd", "unix:no/such/place"];
    let rules = ["--nbd", "unix:drive", "--faults", "no-such-rules"];
    let same = ["--socket", "new"];
    for more in [&fails[..], &rules, &same] {
        let serve = ["serve", "--drive", "tiny", "--backing", "new"];
        let outcome = sandbox.run(&[&serve[..], more].concat());
        assert_eq!(outcome.code, Some(2), "{more:?}: {}", outcome.stderr);
        assert!(!sandbox.dir.join("new").exists(), "{more:?}");
    }
    let mut child = serve(&sandbox);
    drop(Client::new(&sandbox));
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let serve = ["serve", "--drive", "tiny", "--backing", "flash"];
    let outcome = sandbox.run(&[&serve[..], &SMALL, &fails].concat());
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(sandbox.dir.join("flash").exists(), "a drive was in it");
    std::fs::write(sandbox.dir.join("empty"), "").expect("a file");
    let serve = ["serve", "--drive", "tiny", "--backing", "empty"];
    sandbox.run(&[&serve[..], &fails].concat());
    assert!(sandbox.dir.join("empty").exists(), "the user had made it");
}

#[test]
fn the_file_of_a_byte_window_comes_and_goes_with_that_of_its_drive() {
    let sandbox = Sandbox::new();
    let path = |name: &str| sandbox.dir.join(name);
    let serve = ["serve", "--drive", "2b-ssd", "--nbd", "unix:drive"];
    let with = |more: &[&'static str]| sandbox.run(&[&serve[..], more].concat());
    let refused = |more: &[&'static str], words: &str| {
        let outcome = with(more);
        assert_eq!(outcome.code, Some(2), "{more:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    };
    // A drive that does not come to be leaves neither, and nothing of the user's goes.
    refused(&["--backing", "new", "--faults", "none"], "none");
    assert!(!path("new").exists() && !path("new.window").exists());
    std::fs::write(path("new.window"), "the user's").expect("a file");
    refused(&["--backing", "new"], "is there already");
    assert!(!path("new").exists());
    let held = std::fs::read_to_string(path("new.window"));
    assert_eq!(held.expect("it is there"), "the user's");
    std::fs::write(path("notes"), "the user's").expect("a file");
    refused(&["--backing", "notes"], "no backing");
    assert!(!path("notes.window").exists());
    // One that was served leaves both, and is nothing without that of its window.
    let args = [&serve[..], &["--backing", "flash"]].concat();
    let child = sandbox.command(&args).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the command");
    let since = Instant::now();
    while !path("drive").exists() {
        assert!(since.elapsed() < PATIENCE, "nobody serves");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let window = std::fs::metadata(path("flash.window")).expect("its window");
    assert_eq!((window.len(), window.mode() & 0o777), (8 << 20, 0o600));
    refused(&["--record", "flash.window"], "it keeps a live drive");
    std::fs::rename(path("flash.window"), path("elsewhere")).expect("it is moved");
    refused(&["--backing", "flash"], "belong together");
}

/// It ended the process, without a word (SIGXFSZ).
#[test]
fn a_limit_on_the_size_of_files_is_told_as_a_full_disk_is() {
    let sandbox = Sandbox::new();
    let limited = |line: &str| {
        let mut command = Command::new("sh");
        command
            .current_dir(&sandbox.dir)
            .env("LODGER", env!("CARGO_BIN_EXE_lodger"));
        command.args(["-c", &format!("ulimit -f 8; exec \"$LODGER\" {line}")]);
        command.output().expect("a shell")
    };
    let served = limited("serve --drive tiny --nbd unix:drive --backing new");
    assert_eq!(served.status.code(), Some(2), "{served:?}");
    assert!(String::from_utf8_lossy(&served.stderr).contains("`--backing new`: File too large"));
    assert!(!sandbox.dir.join("new").exists());
    let job = "--name=a --rw=randread --size=1m --output-format json --output long";
    let written = limited(&format!("simulate --drive tiny {job}"));
    assert_eq!(written.status.code(), Some(2), "{written:?}");
    assert!(String::from_utf8_lossy(&written.stderr).contains("cannot write `long`"));
}

#[test]
fn a_recording_that_is_being_written_is_not_another_servers() {
    let sandbox = Sandbox::new();
    let record = ["serve", "--drive", "tiny", "--record", "taken", "--nbd"];
    let mut first = sandbox.command(&[&record[..], &["unix:drive"]].concat());
    let mut first = first
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command");
    let since = Instant::now();
    while !sandbox.dir.join("drive").exists() {
        assert!(since.elapsed() < PATIENCE, "nobody serves");
        std::thread::sleep(Duration::from_millis(2));
    }
    let second = sandbox.run(&[&record[..], &["unix:other"]].concat());
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(
        second
            .stderr
            .contains("`taken`: another server has it in use"),
        "{}",
        second.stderr
    );
    first.kill().expect("it runs");
    first.wait().expect("it has ended");
}

#[test]
fn no_output_goes_where_a_drive_is_kept() {
    let sandbox = Sandbox::new();
    let mut child = serve(&sandbox);
    drop(Client::new(&sandbox));
    let flash = sandbox.dir.join("flash");
    let before = std::fs::read(&flash).expect("the file");
    let serve = ["serve", "--drive", "tiny", "--nbd", "unix:other"];
    let record = [&serve[..], &["--record", "flash"]].concat();
    let job = ["--name=a", "--rw=randread", "--size=1m"];
    let simulate = [
        &["simulate", "--drive", "tiny", "--output", "flash"],
        &job[..],
    ]
    .concat();
    let both = [&serve[..], &["--backing", "new", "--record", "./new"]].concat();
    let kept = "it keeps a live drive";
    for (command, words) in [
        (&record[..], kept),
        (&simulate, kept),
        (&both, "this command reads it"),
    ] {
        let outcome = sandbox.run(command);
        assert_eq!(outcome.code, Some(2), "{command:?}: {}", outcome.stderr);
        for word in [words, "hint:"] {
            assert!(
                outcome.stderr.contains(word),
                "{command:?}: {}",
                outcome.stderr
            );
        }
    }
    assert_eq!(std::fs::read(&flash).expect("the file"), before);
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
}

#[test]
fn what_fails_after_ctrl_c_is_told_and_not_that_it_was_interrupted() {
    let sandbox = Sandbox::new();
    let place = ["serve", "--drive", "tiny", "--nbd", "unix:drive"];
    let mut command = sandbox.command(&[&place[..], &["--record", "/dev/full"], &SMALL].concat());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command");
    drop(Client::new(&sandbox));
    let pid = child.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status();
    assert!(told.expect("kill").success());
    let outcome = child.wait_with_output().expect("it ends");
    let (said, wrong) = (outcome.stdout, String::from_utf8_lossy(&outcome.stderr));
    assert_eq!(outcome.status.code(), Some(1), "{wrong}");
    assert!(wrong.contains("the recording is not whole"), "{wrong}");
    assert!(
        String::from_utf8_lossy(&said).contains("clients"),
        "what there was to tell"
    );
}

#[test]
fn what_is_no_backing_is_refused_and_left_as_it_is() {
    let sandbox = Sandbox::new();
    let refused = |path: &str, words: &str| refused(&sandbox, path, &[], words);
    let text = "something of the user's\n".repeat(500);
    std::fs::write(sandbox.dir.join("text"), &text).expect("a file");
    refused("text", "`--backing text`: it is no backing");
    let left = std::fs::read_to_string(sandbox.dir.join("text")).expect("it is there");
    assert_eq!(left, text);
    std::os::unix::fs::symlink("text", sandbox.dir.join("link")).expect("a link");
    refused("link", "symbolic link");
    let pipe = sandbox.dir.join("pipe");
    let made = Command::new("mkfifo").arg(pipe).status();
    assert!(made.expect("mkfifo").success());
    refused("pipe", "no ordinary file");
    refused("/dev/null", "no ordinary file");
    refused(".", "folder");
    refused("no/such/place", "No such file");
}
