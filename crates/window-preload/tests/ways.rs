//! All the ways in which a program may change a file, or pass it on, that has a log: none brings back what was there before,
//! and none loses what was synced.
//!
//! The program writes `old` and has it synced, goes one way, and is killed. A log that has not heard of that way brings
//! `old` back as the next program starts.
#![cfg(target_os = "linux")]

mod common;

use common::Place;
use std::fs;
use std::os::unix::process::ExitStatusExt;

const BEGIN: &str = r"
import ctypes, fcntl, mmap, os, signal, sys
path = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
log = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
def write(fd, data, at=0):
    assert os.pwrite(fd, data, at) == len(data)
    os.fdatasync(fd)
def file_of(data):
    other = os.open(path + '.other', os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    assert os.pwrite(other, data, 0) == len(data)
    return other
write(log, b'old')
";
const END: &str = "\nos.kill(os.getpid(), signal.SIGKILL)\n";

/// One way, and what the file holds after it.
struct Way {
    name: &'static str,
    /// Lines of Python.
    does: &'static str,
    /// What the file holds after power has failed, if that is not what the program saw.
    kept: Option<&'static [u8]>,
    /// What is added to the file's name by then.
    moved: &'static str,
    holds: &'static [u8],
}

/// One that makes it hold `new`.
const fn new(name: &'static str, does: &'static str) -> Way {
    Way {
        name,
        does,
        kept: None,
        moved: "",
        holds: b"new",
    }
}

const WAYS: &[Way] = &[
    new("writev", "os.writev(log, [b'n', b'ew']); os.fdatasync(log)"),
    new(
        "pwritev",
        "os.pwritev(log, [b'n', b'ew'], 0); os.fdatasync(log)",
    ),
    new(
        "pwritev2",
        "os.pwritev(log, [b'n', b'ew'], 0, os.RWF_DSYNC); os.fdatasync(log)",
    ),
    new(
        "sendfile",
        "assert os.sendfile(log, file_of(b'new'), 0, 3) == 3; os.fdatasync(log)",
    ),
    new(
        "copy_file_range",
        "assert os.copy_file_range(file_of(b'new'), log, 3, 0, 0) == 3; os.fdatasync(log)",
    ),
    new(
        "splice",
        "r, w = os.pipe(); os.write(w, b'new'); assert os.splice(r, log, 3, offset_dst=0) == 3; os.fdatasync(log)",
    ),
    new(
        "mmap",
        "m = mmap.mmap(log, 3); m[:] = b'new'; m.flush(); os.fdatasync(log)",
    ),
    new("dup", "write(os.dup(log), b'new')"),
    new("dup2", "os.dup2(log, 77); write(77, b'new')"),
    new(
        "dup3",
        "os.dup2(log, 77, inheritable=False); write(77, b'new')",
    ),
    new(
        "F_DUPFD",
        "write(fcntl.fcntl(log, fcntl.F_DUPFD, 90), b'new')",
    ),
    new(
        "a descriptor that is closed while its duplicate stays",
        "other = os.dup(log); os.close(log); write(other, b'new')",
    ),
    new(
        "opened again and cut",
        "log = os.open(path, os.O_RDWR | os.O_TRUNC); write(log, b'n'); os.pwrite(log, b'ew', 1); os.fdatasync(log)",
    ),
    Way {
        holds: b"x",
        ..new(
            "opened again and cut, and shorter",
            "log = os.open(path, os.O_RDWR | os.O_TRUNC); write(log, b'x')",
        )
    },
    Way {
        holds: b"n",
        ..new("ftruncate", "os.truncate(log, 0); write(log, b'n')")
    },
    Way {
        holds: b"n",
        ..new(
            "truncate of a path",
            "assert libc.truncate(path.encode(), ctypes.c_long(0)) == 0; write(log, b'n')",
        )
    },
    // A stream of the C library's writes by itself.
    new(
        "fdopen",
        "libc.fdopen.restype = ctypes.c_void_p; s = ctypes.c_void_p(libc.fdopen(log, b'r+')); \
         libc.fputs(b'new', s); libc.fflush(s); os.fdatasync(log)",
    ),
    // The number is given to another file.
    Way {
        holds: b"old",
        ..new(
            "close_range",
            "libc.close_range(log, log, 0); again = file_of(b''); assert again == log; write(again, b'new')",
        )
    },
    new(
        "a child that writes, while its parent waits",
        "if os.fork() == 0:\n    write(log, b'new')\n    os._exit(0)\nos.wait()",
    ),
    // What was there before the child is safe, and what the parent writes after it, too.
    Way {
        kept: Some(b"old"),
        holds: b"oldnew",
        ..new(
            "a child that closes what it does not need",
            "if os.fork() == 0:\n    os.close(log)\n    os._exit(0)\nos.wait()\nwrite(log, b'new', 3)",
        )
    },
    Way {
        kept: Some(b"old"),
        moved: ".moved",
        holds: b"oldnew",
        ..new(
            "rename",
            "os.rename(path, path + '.moved'); write(log, b'new', 3)",
        )
    },
    // What was synced before that is in the file by then.
    Way {
        moved: ".moved",
        holds: b"old",
        ..new("rename at the end", "os.rename(path, path + '.moved')")
    },
];

fn goes(way: &Way, number: usize) -> Result<(), String> {
    let Some(place) = Place::new(&format!("way-{number}"), "mmap") else {
        return Ok(());
    };
    let path = place.folder.join("some.aof");
    let program = format!("{BEGIN}{}{END}", way.does);
    let mut command = place.command("python3", true);
    let done = command.args(["-c", &program]).arg(&path).output();
    let done = done.expect("python3 runs");
    if done.status.signal() != Some(9) {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let name = format!("some.aof{}", way.moved);
    let path = path.with_file_name(name);
    if let Some(kept) = way.kept {
        fs::write(&path, kept).expect("the file is written");
    }
    place.recover(true);
    let found = fs::read(&path).map_err(|error| error.to_string())?;
    if found == way.holds {
        return Ok(());
    }
    let words = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Err(format!(
        "it holds `{}`, not `{}`",
        words(&found),
        words(way.holds)
    ))
}

#[test]
fn no_way_of_changing_a_log_brings_back_what_was_there_before() {
    let all = WAYS.iter().enumerate();
    let wrong: Vec<String> = all
        .filter_map(|(number, way)| Some(format!("{}: {}", way.name, goes(way, number).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
