//! How devices are named, and which are spoken of.

use super::text::{excerpt, grouped, plural};
use super::{DeviceChoice, DeviceCount};
use std::collections::HashMap;

/// Most devices counted of one volume, and the longest name: more can be no devices.
const PARTS_MAX: usize = 1 << 10;
const NAME_MAX_BYTES: usize = 64;

/// The devices of a format whose devices are parts of one volume.
#[derive(Debug)]
pub(super) struct Parts {
    noun: &'static str,
    counts: HashMap<Box<[u8]>, u64>,
}

impl Parts {
    pub(super) fn new(noun: &'static str) -> Self {
        let counts = HashMap::new();
        Parts { noun, counts }
    }

    pub(super) fn add(&mut self, device: &[u8]) {
        if let Some(count) = self.counts.get_mut(device) {
            *count += 1;
        } else if device.len() <= NAME_MAX_BYTES && self.counts.len() < PARTS_MAX {
            self.counts.insert(device.into(), 1);
        }
    }

    /// What there is to say, if there are several.
    pub(super) fn note(&self) -> Option<String> {
        if self.counts.len() < 2 {
            return None;
        }
        let devices = self.counts.iter().map(|(name, &requests)| DeviceCount {
            name: device_name(name),
            requests,
        });
        let mut devices: Vec<DeviceCount> = devices.collect();
        devices.sort_by(|a, b| {
            b.requests
                .cmp(&a.requests)
                .then_with(|| a.name.cmp(&b.name))
        });
        Some(format!(
            "the file names {}: {}; all are taken, as MQSim takes them, as one space of addresses; choose one with \
             `--device NAME`",
            plural(devices.len() as u64, self.noun),
            list(&devices)
        ))
    }
}

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
