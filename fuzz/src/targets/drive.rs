//! Drive files (`drives/*.toml`), and `--set KEY=VALUE`.

use lodger_core::spec::ParsedDrive;
use lodger_run::{Drive, drives};

/// A file, and after a byte of 0 values that are set over it.
pub fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let sets: Vec<(&str, &str)> = parts.filter_map(|set| set.split_once('=')).collect();
    match Drive::parse("drive.toml", file, &sets) {
        Ok(drive) => is_the_same_again(&drive.parsed),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Values set over a small drive, one a line: units, sizes, rates and times above all.
pub fn sets(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let base = drives::text("tiny").expect("a drive of the collection");
    let sets: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    if let Ok(drive) = Drive::parse("tiny.toml", base, &sets) {
        is_the_same_again(&drive.parsed);
    }
}

/// A drive that is written down and read is the same, and its superblocks can be counted.
fn is_the_same_again(drive: &ParsedDrive) {
    let text = drive.to_toml();
    let again = Drive::parse("again.toml", &text, &[]);
    let again =
        again.unwrap_or_else(|error| panic!("what was written is not read: {error}\n{text}"));
    assert!(
        again.parsed.spec == drive.spec,
        "another drive is read than was written:\n{text}"
    );
    let layout = drive.spec.layout();
    assert!(layout.user_slots > 0 && layout.spare_factor() >= 0.0);
}
