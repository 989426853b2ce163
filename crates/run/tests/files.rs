//! Are files opened as the program wishes, also those that others name?

use lodger_run::{Drive, ErrorKind, Files, TraceOptions, WorkloadFile};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

static OPENED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    OPENED.lock().unwrap().push(path.to_owned());
    if path == Path::new("-") {
        return Ok(Box::new(&b"[j]\nrw=read\nbs=4k\nnumber_ios=1\n"[..]));
    }
    Ok(Box::new(File::open(path)?))
}

fn opened() -> Vec<String> {
    let paths = std::mem::take(&mut *OPENED.lock().unwrap());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(name).collect()
}

#[test]
fn a_program_opens_all_files_its_own_way() {
    let folder = std::env::temp_dir().join(format!("lodger-run-files-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let common = file("common.fio", "bs=4k\nnumber_ios=1\n");
    let job = format!("[j]\nrw=read\ninclude {}\n", common.display());
    let job = file("job.fio", &job);
    file("base.toml", "extends = \"tiny\"\n");
    let drive = file("mine.toml", "extends = \"base.toml\"\n");

    let files = Files::opened_by(open);
    let drive = files.drive(drive.to_str().unwrap(), &[]).unwrap();
    assert_eq!(opened(), ["mine.toml", "base.toml"]);
    let workload = files.workload(&job, &TraceOptions::default()).unwrap();
    assert_eq!(opened(), ["job.fio"]);
    // What a job file includes is read whenever the workload is made for a drive.
    for _ in 0..2 {
        workload.workload(drive.spec(), 0).unwrap();
        assert_eq!(opened(), ["common.fio"]);
    }
    let piped = files.workload(Path::new("-"), &TraceOptions::default());
    assert!(matches!(piped, Ok(WorkloadFile::Fio { .. })));
    assert_eq!(opened(), ["-"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_not_there_is_the_users_to_mend() {
    for error in [
        Drive::open("rc100", &[]).unwrap_err(),
        Drive::open("no/such.toml", &[]).unwrap_err(),
        Drive::open("tiny", &[("nand.chanels", "2")]).unwrap_err(),
        WorkloadFile::open(Path::new("no/such.fio"), &TraceOptions::default()).unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.hint.is_some(), "{error}");
    }
}
