//! A file, its log and a loss of power at any instant, beside what was promised.

use super::{Change, Identity, Log, Memory, Owner};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;

/// A window's bytes: what was synced is there after a loss of power, of the rest any 8 bytes.
#[derive(Clone, Default)]
struct Ram {
    now: BTreeMap<u64, u8>,
    synced: BTreeMap<u64, u8>,
}

impl Memory for Ram {
    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        self.now.extend((at..).zip(from.iter().copied()));
        Ok(())
    }

    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        for (at, byte) in (at..).zip(into) {
            *byte = self.now.get(&at).copied().unwrap_or(0);
        }
        Ok(())
    }
}

impl Ram {
    fn lose_power(&mut self, seed: u64) {
        let now = std::mem::take(&mut self.now);
        self.now = self.synced.clone();
        for (at, byte) in now {
            if (seed ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1 {
                self.now.insert(at, byte);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u16, Vec<u8>),
    Truncate(u16),
    Sync,
    LosePower(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u16..600, prop::collection::vec(any::<u8>(), 1..80)).prop_map(|(at, data)| Step::Write(at, data)),
        1 => (0u16..600).prop_map(Step::Truncate),
        3 => Just(Step::Sync),
        1 => any::<u64>().prop_map(Step::LosePower),
    ];
    prop::collection::vec(step, 1..60)
}

fn apply(file: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, data) => {
            let end = *at as usize + data.len();
            file.resize(file.len().max(end), 0);
            file[*at as usize..end].copy_from_slice(data);
        }
        Change::Truncate(length) => file.resize(*length as usize, 0),
    }
}

const IDENTITY: Identity = [1, 2, 3];
/// Room for some five changes: logs that are full, and begin anew, are as common as others.
const PLACE: (u64, u64) = (4096, 4096 + 512 + 400);

proptest! {
    #![proptest_config(lodger_testing::config(400))]

    #[test]
    fn what_was_synced_is_there_after_a_loss_of_power(steps in steps()) {
        let owner = Owner { identity: IDENTITY, path: b"/a".to_vec() };
        let mut ram = Ram::default();
        // What the program sees, what it was promised, what is on the disk, and whether the log has all the rest.
        let (mut file, mut promised, mut disk) = (Vec::new(), Vec::new(), Vec::new());
        let (mut log, _, _) = Log::open(&ram, PLACE).unwrap();
        let mut is_complete = true;
        let mut clock = 1;
        log.begin(&mut ram, &owner, clock).unwrap();
        ram.synced = ram.now.clone();
        let mut since = Vec::new();
        for step in steps {
            clock += 1;
            let change = match step {
                Step::Write(at, data) => Change::Write(at.into(), data),
                Step::Truncate(length) => Change::Truncate(length.into()),
                Step::Sync if is_complete => {
                    ram.synced = ram.now.clone();
                    promised.clone_from(&file);
                    since.clear();
                    continue;
                }
                Step::Sync => {
                    disk.clone_from(&file);
                    promised.clone_from(&file);
                    since.clear();
                    log.begin(&mut ram, &owner, clock).unwrap();
                    // Without this the log before comes back, and undoes what was synced.
                    ram.synced = ram.now.clone();
                    is_complete = true;
                    continue;
                }
                Step::LosePower(seed) => {
                    ram.lose_power(seed);
                    let (opened, of, changes) = Log::open(&ram, PLACE).unwrap();
                    log = opened;
                    file.clone_from(&disk);
                    if of == owner {
                        changes.iter().for_each(|change| apply(&mut file, change));
                    }
                    // At least what was promised, and of what came after it a beginning.
                    let mut may_be = promised.clone();
                    let mut is_found = file == may_be;
                    for change in &since {
                        apply(&mut may_be, change);
                        is_found |= file == may_be;
                    }
                    prop_assert!(is_found, "{file:?} was promised as {promised:?}");
                    disk.clone_from(&file);
                    promised.clone_from(&file);
                    since.clear();
                    log.begin(&mut ram, &owner, clock).unwrap();
                    ram.synced = ram.now.clone();
                    is_complete = true;
                    continue;
                }
            };
            let taken_down = is_complete && match &change {
                Change::Write(at, data) => log.append(&mut ram, (*at, Some(data))).unwrap(),
                Change::Truncate(length) => log.append(&mut ram, (*length, None)).unwrap(),
            };
            is_complete &= taken_down;
            apply(&mut file, &change);
            since.push(change);
        }
    }
}

#[test]
fn another_files_log_is_not_taken_for_ones_own() {
    let mut ram = Ram::default();
    let (mut log, none, _) = Log::open(&ram, PLACE).unwrap();
    assert_eq!(none, Owner::default());
    let owner = Owner {
        identity: [9, 8, 7],
        path: b"/other".to_vec(),
    };
    log.begin(&mut ram, &owner, 5).unwrap();
    assert!(log.append(&mut ram, (3, Some(b"abc"))).unwrap());
    let (_, of, changes) = Log::open(&ram, PLACE).unwrap();
    assert_eq!(
        (of, changes),
        (owner, vec![Change::Write(3, b"abc".to_vec())])
    );
    // A header that is torn is none.
    ram.store(PLACE.0 + 8, &[0xff]).unwrap();
    assert_eq!(Log::open(&ram, PLACE).unwrap().1, Owner::default());
}
