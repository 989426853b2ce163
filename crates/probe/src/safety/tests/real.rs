//! With files and loop devices of this machine, where they are to be had.

use super::*;

fn image(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.0.join(name);
    fs::write(&path, vec![7; 4 << 20]).unwrap();
    path
}

/// Loop devices are the whole machine's: while one test shows a file that is gone through one, no other
/// may write to anything.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static LOOPS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let held = LOOPS.lock();
    held.unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn refusal_of(path: &Path) -> Option<String> {
    let target = FileTarget::open(path, false).unwrap();
    let may = target.may_be_written(&Machine::default());
    may.err().map(|error| error.to_string())
}

/// A loop device, where one can be had.
struct Loop(PathBuf);

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                let device = String::from_utf8(made.stdout).unwrap();
                Some(Loop(device.trim().into()))
            }
            _ => {
                eprintln!("left out: no loop device to be had");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
        // The kernel lets go of the file when the last one closes the device, not before.
        let name = self.0.file_name().unwrap().to_str().unwrap();
        let shows = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
        for _ in 0..50 {
            if !shows.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// A file system mounted where only one process sees it, until that ends.
struct Mounted(Child);

impl Mounted {
    fn new(device: &Path, folder: &Folder) -> Option<Self> {
        let quiet = |mut command: Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let mut make = Command::new("mkfs.ext4");
        make.arg("-q").arg(device);
        let mut may = Command::new("unshare");
        may.args(["--mount", "true"]);
        if !quiet(make) || !quiet(may) {
            eprintln!("left out: no file system to be mounted");
            return None;
        }
        let at = folder.0.join("mounted");
        fs::create_dir_all(&at).unwrap();
        let script = "mount \"$0\" \"$1\" && : > \"$1/ready\" && echo ready && read line";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script])
            .arg(device)
            .arg(at);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
        Some(Mounted(child))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_whose_loop_device_is_mounted_and_that_device_are_refused() {
    let _alone = alone();
    let folder = Folder::new("loops");
    let image = image(&folder, "disk.img");
    assert_eq!(refusal_of(&image), None);
    let Some(device) = Loop::new(&image) else {
        return;
    };
    let shows = "shows it";
    says(refusal_of(&image), shows);
    assert_eq!(refusal_of(&device.0), None, "a device that nobody uses");
    let Some(twin) = Loop::new(&image) else {
        return;
    };
    says(refusal_of(&device.0), shows);
    drop(twin);
    let Some(mounted) = Mounted::new(&device.0, &folder) else {
        return;
    };
    // Where we do not see it mounted, the kernel does.
    says(refusal_of(&device.0), CLAIMED);
    says(refusal_of(&image), shows);
    drop(mounted);
    // A second device over it, of which the first knows nothing.
    let Some(over) = Loop::new(&device.0) else {
        return;
    };
    says(refusal_of(&device.0), shows);
    assert_eq!(refusal_of(&over.0), None);
    let _held = hold(&loop_disk(&device.0), &Machine::default()).unwrap();
    says(refusal_of(&over.0), CLAIMED);
}

fn loop_disk(path: &Path) -> Disk {
    let Some(Node::Block(number)) = Node::of(&fs::metadata(path).unwrap()) else {
        panic!("a loop device is a block device");
    };
    disk_of(Path::new("/sys"), number).unwrap()
}

#[test]
fn an_active_swap_file_is_refused() {
    let _alone = alone();
    let folder = Folder::new("swapon");
    let image = image(&folder, "swap.img");
    let quiet = |name: &str| {
        let mut command = Command::new(name);
        let command = command
            .arg(&image)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&image, fs::Permissions::from_mode(0o600)).unwrap();
    if !quiet("mkswap") || !quiet("swapon") {
        return eprintln!("left out: no swapping to files here");
    }
    let refused = refusal_of(&image);
    assert!(quiet("swapoff"));
    says(refused, "is used for swapping");
    assert_eq!(refusal_of(&image), None);
}

#[test]
fn what_a_path_leads_to_after_consent_is_not_written_if_it_is_something_else() {
    let _alone = alone();
    let folder = Folder::new("moved");
    let images = [image(&folder, "a.img"), image(&folder, "b.img")];
    let path = folder.0.join("target");
    let lead = |to: &Path| {
        let _ = fs::remove_file(&path);
        symlink(to, &path).unwrap();
    };
    let machine = Machine::default();
    let moved = |from: &Path, to: &Path| {
        lead(from);
        let target = FileTarget::open(&path, false).unwrap();
        // What is consented to is called as what will be written, not as the link to it.
        assert_eq!(target.describe().serial, "a.img");
        lead(to);
        let Err(TargetError::Unsupported(why)) = target.for_writing(&machine) else {
            panic!("another one is written to");
        };
        assert!(why.contains("no more what was agreed to"), "{why}");
    };
    moved(&images[0], &images[1]);
    lead(&images[0]);
    let target = FileTarget::open(&path, false).unwrap();
    assert!(
        target
            .for_writing(&machine)
            .unwrap()
            .describe()
            .no_write
            .is_none()
    );
    let devices: Vec<Loop> = images.iter().filter_map(|image| Loop::new(image)).collect();
    let [a, b] = &devices[..] else { return };
    moved(&a.0, &b.0);
}

#[test]
fn another_file_in_the_same_loop_device_is_not_what_was_agreed_to() {
    let _alone = alone();
    let folder = Folder::new("reattached");
    // Of one name: the serial number that a loop device has.
    let (a, b) = (folder.0.join("a"), folder.0.join("b"));
    let images = [&a, &b].map(|place| {
        fs::create_dir_all(place).unwrap();
        let path = place.join("disk.img");
        fs::write(&path, vec![7; 4 << 20]).unwrap();
        path
    });
    let Some(device) = Loop::new(&images[0]) else {
        return;
    };
    let shown = FileTarget::open(&device.0, false).unwrap();
    let identity = shown.identity().clone();
    drop(shown);
    let run = |args: &[&Path]| {
        Command::new("losetup")
            .args(args)
            .status()
            .unwrap()
            .success()
    };
    assert!(run(&[Path::new("-d"), &device.0]));
    // Another test may have it for a while.
    let again = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(40));
        run(&[&device.0, &images[1]])
    });
    if !again {
        return eprintln!("left out: somebody else took the loop device");
    }
    let now = FileTarget::open(&device.0, false).unwrap();
    says(identity.difference(now.identity()), "its attachment was");
}
