//! Ranges of files on the byte window, step by step; what is pinned stays so from one command to the next.
//!
//! ```text
//! pin_file /dev/nvme0n1 extents FILE FROM BYTES     where the range lies: from, first block, bytes
//! pin_file /dev/nvme0n1 pin ENTRY FILE FROM BYTES AT
//! pin_file /dev/nvme0n1 store ENTRY AT              of standard input, then a BA_SYNC
//! pin_file /dev/nvme0n1 load AT BYTES
//! pin_file /dev/nvme0n1 flush ENTRY FILE FROM       the file has it then
//! ```

#[cfg(target_os = "linux")]
fn run(words: &[&str]) -> std::io::Result<()> {
    use lodger_window::Window;
    use std::fs::File;
    use std::io::{self, Read, Write};
    let number = |text: &str| {
        let wrong = |_| io::Error::other(format!("`{text}` is no number"));
        text.parse::<u64>().map_err(wrong)
    };
    let entry = |text: &str| {
        let wrong = |_| io::Error::other(format!("`{text}` is no entry"));
        text.parse::<u8>().map_err(wrong)
    };
    let open = |path: &str| File::options().read(true).write(true).open(path);
    let (place, rest) = words.split_first().unwrap_or((&"", &[]));
    let mut window = Window::open(place)?;
    match rest {
        ["extents", path, from, bytes] => {
            let (file, from) = (open(path)?, number(from)?);
            for extent in window.extents(&file, from..from.saturating_add(number(bytes)?))? {
                println!("{} {} {}", extent.from, extent.lba, extent.bytes);
            }
        }
        ["pin", as_entry, path, from, bytes, at] => {
            let (file, from, at) = (open(path)?, number(from)?, number(at)?);
            let range = from..from.saturating_add(number(bytes)?);
            let pin = window.pin_file(entry(as_entry)?, &file, range, at)?;
            println!("{} {}", pin.lba, pin.bytes);
        }
        ["store", of_entry, at] => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            window.store(number(at)?, &bytes)?;
            window.sync(entry(of_entry)?)?;
        }
        ["load", at, bytes] => {
            let at = number(at)?;
            let count = number(bytes)?.min(window.bytes());
            let mut bytes = vec![0; count as usize];
            window.load(at, &mut bytes)?;
            io::stdout().write_all(&bytes)?;
        }
        ["flush", of_entry, path, from] => {
            let of_entry = entry(of_entry)?;
            window.resume_file(of_entry, &open(path)?, number(from)?)?;
            window.flush(of_entry)?;
        }
        _ => {
            return Err(io::Error::other(
                "the head of this file says how it is called",
            ));
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
