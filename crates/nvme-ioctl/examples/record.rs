//! Prints what an NVMe device (`/dev/ng0n1`, `/dev/nvme0n1`, as root) replies to the commands that ask,
//! as the fixtures of `crates/probe/tests/fixtures/nvme` are written: the outcome of the ioctl, and the
//! bytes that are not 0, by offset.

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use lodger_nvme_ioctl::{Command, Device, PAGE_BYTES};
    let path = std::env::args_os().nth(1);
    let path = path.ok_or_else(|| std::io::Error::other("which device?"))?;
    let device = Device::new(std::fs::File::open(path)?);
    for (name, command, bytes) in [
        ("controller", Command::IdentifyController, PAGE_BYTES),
        ("namespace", Command::IdentifyNamespace(1), PAGE_BYTES),
        ("no-namespace", Command::IdentifyNamespace(2), PAGE_BYTES),
        ("host-memory", Command::GetHostMemory, PAGE_BYTES),
        ("write-cache", Command::GetWriteCache, 0),
    ] {
        let mut data = vec![0; bytes];
        match device.submit(&command, &mut data) {
            Ok(done) => println!("@{name} status {:x} result {:x}", done.status, done.result),
            Err(error) => println!("@{name} errno {}", error.raw_os_error().unwrap_or(0)),
        }
        for (row, bytes) in data.chunks(16).enumerate() {
            if bytes.iter().any(|byte| *byte != 0) {
                let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                println!("{}: {}", row * 16, bytes.join(" "));
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
