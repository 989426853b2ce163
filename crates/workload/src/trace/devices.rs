//! How devices are named, and which are spoken of.

use super::text::{excerpt, grouped, plural};
use super::{DeviceChoice, DeviceCount};

/// Whether the user means this device. Between host and disk of MSR (`hm,1` in the file) people
/// write a dot or, like the files' names, an underscore.
pub(super) fn is_named(device: &[u8], wanted: &str) -> bool {
    let wanted = wanted.as_bytes();
    device.len() == wanted.len()
        && device.iter().zip(wanted).all(|(&have, &want)| {
            have == want || (have == b',' && matches!(want, b'.' | b'_' | b':'))
        })
}

pub(super) fn device_name(device: &[u8]) -> String {
    // `8,0` is how Linux writes a device; `hm,1` would be read as two.
    let linux = device.iter().all(|c| c.is_ascii_digit() || *c == b',');
    let name = excerpt(device);
    if linux || name.contains('/') {
        name
    } else {
        name.replace(',', ".")
    }
}

pub(super) fn list(devices: &[DeviceCount]) -> String {
    const SHOWN: usize = 8;
    let mut words: Vec<String> = devices
        .iter()
        .take(SHOWN)
        .map(|device| format!("`{}` ({})", device.name, grouped(device.requests)))
        .collect();
    if devices.len() > SHOWN {
        words.push(format!("{} more", grouped((devices.len() - SHOWN) as u64)));
    }
    words.join(", ")
}

pub(super) fn chosen_note(
    noun: &str,
    device: &str,
    choice: &DeviceChoice,
    devices: &[DeviceCount],
) -> String {
    let why = match choice {
        DeviceChoice::Busiest => ", the busiest; choose with `--device NAME` or `--device all`",
        _ => "",
    };
    format!(
        "the file holds {}: {}; taken: `{device}`{why}",
        plural(devices.len() as u64, noun),
        list(devices)
    )
}
