//! What a drive makes of host memory: how much it uses, and how many units of the map that holds.

use crate::hmb;
use lodger_core::DriveSpec;
use lodger_core::controller::MapRole;
use lodger_core::host::hmb::{CHUNK_BYTES_MAX, HostPolicy, LINUX_CAP_BYTES, PAGE_BYTES, negotiate};
use lodger_core::spec::{
    ENTRIES_PER_TRANSLATION_PAGE, HmbSpec, MapTierSpec, Rounding, SLOT_BYTES, Tier,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A drive's host memory buffer and what stands on it.
#[derive(Clone, Debug)]
pub struct Place {
    hmb: HmbSpec,
    /// Read cache and write buffer on host memory, bytes: they come before the map.
    pub data_bytes: u64,
    /// The map's share, if the map is kept there.
    pub map: Option<MapTierSpec>,
    /// Translation pages of the whole map.
    pub pages: u32,
    /// Step between sizes worth telling apart, bytes.
    pub step_bytes: u64,
    /// Where the drive takes no more than so much of what is offered.
    pub limit: Option<Limit>,
}

/// The most that the drive takes, in pieces as the host gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// So much, bytes; 0 for nothing ever.
    pub bytes: u64,
    /// The key that says so.
    pub key: &'static str,
}

impl Limit {
    fn of(hmb: &HmbSpec) -> Option<Self> {
        if hmb.min_descriptor_bytes > CHUNK_BYTES_MAX {
            let key = "tier.hmb.min_descriptor";
            return Some(Limit { bytes: 0, key });
        }
        let most_bytes = match hmb.max_descriptors {
            0 => return None,
            pieces => u64::from(pieces) * CHUNK_BYTES_MAX,
        };
        Some(Limit {
            bytes: granted_bytes(hmb, most_bytes),
            key: "tier.hmb.max_descriptors",
        })
    }
}

/// What the drive has of so much that is offered, in pieces as the host gives them.
fn granted_bytes(hmb: &HmbSpec, offered_bytes: u64) -> u64 {
    if hmb.max_descriptors == 0 && hmb.min_descriptor_bytes <= PAGE_BYTES {
        // All of it: thousands of sizes are asked for, and no list of pieces is made for each.
        return offered_bytes;
    }
    negotiate(hmb, &HostPolicy::offering(offered_bytes)).granted_bytes()
}

impl Place {
    /// `None` for a drive that asks for no host memory or keeps nothing there.
    #[must_use]
    pub fn of(spec: &DriveSpec) -> Option<Self> {
        let hmb = spec.tiers.hmb.clone()?;
        let roles = &spec.roles;
        let map = roles.map.tiers.iter().find(|t| t.tier == Tier::Hmb);
        let buffer = &roles.write_buffer;
        let mut data_bytes = 0;
        if buffer.tier == Tier::Hmb {
            data_bytes += buffer.bytes;
        }
        if let Some(cache) = roles.read_cache.as_ref().filter(|c| c.tier == Tier::Hmb) {
            data_bytes += cache.bytes;
        }
        if !hmb::is_used(spec) {
            return None;
        }
        let slots = spec.capacity_bytes / SLOT_BYTES;
        let mut place = Place {
            hmb,
            data_bytes,
            map: map.cloned(),
            pages: slots.div_ceil(ENTRIES_PER_TRANSLATION_PAGE) as u32,
            step_bytes: 0,
            limit: None,
        };
        let limit = Limit::of(&place.hmb);
        place.limit = limit.filter(|limit| limit.bytes < place.preferred_bytes());
        // Nobody budgets host memory finer than a mebibyte, unless the drive itself is tiny.
        place.step_bytes = (place.all_bytes() / 32)
            .next_power_of_two()
            .clamp(4 * KIB, MIB);
        Some(place)
    }

    /// What the drive prefers (HMPRE), bytes.
    #[must_use]
    pub fn preferred_bytes(&self) -> u64 {
        self.hmb.preferred_bytes
    }

    /// What it is compared with, bytes: what the drive has of what Linux gives it by default, or of what it prefers
    /// where that would be nothing. What is offered, where it has nothing of that.
    #[must_use]
    pub fn yardstick_bytes(&self) -> u64 {
        let mut given = self.hmb.preferred_bytes.min(LINUX_CAP_BYTES);
        if given < self.hmb.min_bytes {
            given = self.hmb.preferred_bytes;
        }
        match self.granted_bytes(given) {
            0 => given,
            granted => granted,
        }
    }

    /// What the drive has of so much that is offered, bytes: nothing below its minimum.
    #[must_use]
    pub fn granted_bytes(&self, offered_bytes: u64) -> u64 {
        match granted_bytes(&self.hmb, offered_bytes) {
            granted if granted < self.hmb.min_bytes => 0,
            granted => granted,
        }
    }

    /// What it needs at least (HMMIN), bytes.
    #[must_use]
    pub fn min_bytes(&self) -> u64 {
        self.hmb.min_bytes
    }

    /// What it makes use of when it is offered so much, bytes.
    #[must_use]
    pub fn usable_bytes(&self, offered_bytes: u64) -> u64 {
        self.hmb.usable_bytes(self.granted_bytes(offered_bytes))
    }

    /// Whether only powers of two are used.
    #[must_use]
    pub fn rounds(&self) -> bool {
        self.hmb.rounding == Rounding::PowerOfTwo
    }

    /// What is left for the map when so much is offered, bytes.
    #[must_use]
    pub fn map_bytes(&self, offered_bytes: u64) -> u64 {
        self.usable_bytes(offered_bytes)
            .saturating_sub(self.data_bytes)
    }

    /// Units of the map held when so much is offered; 0 when the map is not kept there.
    #[must_use]
    pub fn units(&self, offered_bytes: u64) -> u32 {
        let map_bytes = self.map_bytes(offered_bytes);
        self.map.as_ref().map_or(0, |tier| {
            MapRole::units_that_fit(tier, map_bytes)
                .min(self.pages.div_ceil(tier.unit_translation_pages))
        })
    }

    /// Two offers of equal effect have equal effects: what of it the data roles get, and the units
    /// of the map.
    #[must_use]
    pub fn effect(&self, offered_bytes: u64) -> (u64, u32) {
        let data_bytes = self.usable_bytes(offered_bytes).min(self.data_bytes);
        (data_bytes, self.units(offered_bytes))
    }

    /// The smallest grant that holds so many units, in whole steps, or the most that the drive takes, bytes.
    #[must_use]
    pub fn grant_for(&self, units: u64) -> u64 {
        let unit_bytes = self.map.as_ref().map_or(0, MapTierSpec::unit_bytes);
        let grant = self.grant_for_bytes(self.data_bytes + units.saturating_mul(unit_bytes));
        self.limited(grant)
    }

    fn limited(&self, grant_bytes: u64) -> u64 {
        let limit = self.limit.map(|limit| limit.bytes);
        limit.map_or(grant_bytes, |limit| grant_bytes.min(limit))
    }

    /// The smallest grant of which so much is usable, in whole steps, bytes.
    fn grant_for_bytes(&self, bytes: u64) -> u64 {
        let bytes = bytes.max(1).next_multiple_of(self.step_bytes.max(1));
        let granted = if self.rounds() {
            bytes.next_power_of_two()
        } else {
            bytes
        };
        // The drive uses nothing below its minimum, whatever would fit.
        granted.max(self.hmb.min_bytes)
    }

    /// What holds everything that can stand there, bytes.
    fn all_bytes(&self) -> u64 {
        let unit_bytes = self.map.as_ref().map_or(0, |tier| {
            u64::from(self.pages.div_ceil(tier.unit_translation_pages)) * tier.unit_bytes()
        });
        self.data_bytes + unit_bytes
    }

    /// Grants in between that differ in effect, ascending: whole steps, or powers of two.
    #[must_use]
    pub fn grants(&self, above_bytes: u64, up_to_bytes: u64) -> Vec<u64> {
        let mut grants = Vec::new();
        let mut grant = match self.hmb.min_bytes {
            0 => self.grant_for_bytes(1),
            least => least,
        };
        // Pieces that the drive does not take may be all that two sizes differ by.
        let mut had_bytes = 0;
        while grant <= self.limited(up_to_bytes) {
            let granted_bytes = self.granted_bytes(grant);
            if grant > above_bytes && granted_bytes > had_bytes {
                grants.push(grant);
                had_bytes = granted_bytes;
            }
            // After the minimum itself come multiples of the step, not of the minimum; twice as much where that is less.
            let next = self.grant_for_bytes(self.next_bytes(grant));
            grant = match grant < self.step_bytes {
                true => next.min(2 * self.hmb.usable_bytes(grant)).max(grant + 1),
                false => next,
            };
        }
        grants
    }

    fn next_bytes(&self, granted_bytes: u64) -> u64 {
        if self.rounds() {
            self.hmb.usable_bytes(granted_bytes) + 1
        } else {
            granted_bytes + 1
        }
    }

    /// The grant from which on more makes no difference at all, bytes.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        self.limited(self.grant_for_bytes(self.all_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drive;

    fn place(name: &str, sets: &[(&str, &str)]) -> Place {
        let drive = Drive::open(name, sets).unwrap();
        Place::of(drive.spec()).unwrap()
    }

    #[test]
    fn a_drive_without_host_memory_has_no_place() {
        for name in ["a1000", "970-pro", "wd-black-3d"] {
            let drive = Drive::open(name, &[]).unwrap();
            assert!(Place::of(drive.spec()).is_none(), "{name}");
        }
    }

    #[test]
    fn powers_of_two_begin_at_the_minimum() {
        // The RC100 takes 10 MiB at least, of which it uses 8.
        let rc100 = place("rc100-480", &[]);
        assert_eq!(
            rc100.grants(0, 128 * MIB),
            [10 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB]
        );
        assert_eq!(rc100.grants(10 * MIB, 38 * MIB), [16 * MIB, 32 * MIB]);
        assert_eq!(rc100.units(10 * MIB - 1), 0);
        assert_eq!(rc100.units(10 * MIB), 24);
        assert_eq!(rc100.grant_for(24), 10 * MIB);
        assert_eq!(rc100.grant_for(25), 16 * MIB);
    }

    #[test]
    fn without_rounding_every_mebibyte_counts() {
        let a80 = place("a80", &[]);
        assert_eq!(a80.grants(0, 11 * MIB), [8, 9, 10, 11].map(|n| n * MIB));
        assert_eq!(a80.units(8 * MIB), 2048);
        assert_eq!(a80.grant_for(2049), 9 * MIB);
        // The whole map: 512 GB in pages of 4 MiB.
        assert_eq!(a80.units(a80.largest_bytes()), a80.pages);
        assert!(a80.units(a80.largest_bytes() - MIB) < a80.pages);
        assert_eq!(a80.effect(u64::MAX), a80.effect(a80.largest_bytes()));
    }

    /// Linux gives pieces of 4 MiB; the drive takes so many of them, and none that is short.
    #[test]
    fn what_the_drive_does_not_take_of_an_offer_is_not_counted() {
        let few = place("a80", &[("tier.hmb.max_descriptors", "3")]);
        assert_eq!(few.granted_bytes(11 * MIB), 11 * MIB);
        assert_eq!(few.granted_bytes(480 * MIB), 12 * MIB);
        assert_eq!(few.effect(480 * MIB), few.effect(12 * MIB));
        assert_eq!(few.grants(0, 480 * MIB).last(), Some(&(12 * MIB)));
        assert_eq!([few.yardstick_bytes(), few.largest_bytes()], [12 * MIB; 2]);
        // What is left over is a piece of its own.
        let long = place("a80", &[("tier.hmb.min_descriptor", "\"3MiB\"")]);
        assert_eq!(long.grants(0, 13 * MIB), [8, 11, 12].map(|n| n * MIB));
        let out_of_reach = [
            [("tier.hmb.min_descriptor", "\"8MiB\"")],
            [("tier.hmb.max_descriptors", "1")],
        ];
        for sets in out_of_reach {
            let never = place("a80", &sets);
            assert_eq!(never.limit.map(|limit| limit.bytes), Some(0));
            assert_eq!(never.usable_bytes(480 * MIB), 0);
            assert!(never.grants(0, 480 * MIB).is_empty());
        }
        assert_eq!(place("a80", &[]).limit, None);
    }

    #[test]
    fn a_tiny_drive_has_tiny_steps() {
        let tiny = place("tiny", &[]);
        assert_eq!(tiny.step_bytes, 16 * KIB);
        assert_eq!(tiny.grants(0, 96 * KIB), [64, 80, 96].map(|n| n * KIB));
    }

    /// Steps of a mebibyte began with the first: 512 KiB were called the least of a drive that 256 were enough for.
    #[test]
    fn a_minimum_below_the_step_is_a_size_of_its_own() {
        let a80 = place("a80", &[("tier.hmb.min", "\"256KiB\"")]);
        assert_eq!(a80.step_bytes, MIB);
        assert_eq!(
            a80.grants(0, 3 * MIB),
            [256, 512, 1024, 2048, 3072].map(|n| n * KIB)
        );
        assert_eq!(a80.grants(300 * KIB, MIB), [512 * KIB, MIB]);
        let rounds = place(
            "a80",
            &[
                ("tier.hmb.min", "\"300KiB\""),
                ("tier.hmb.rounding", "\"power-of-two\""),
            ],
        );
        assert_eq!(
            rounds.grants(0, 2 * MIB),
            [300, 512, 1024, 2048].map(|n| n * KIB)
        );
    }

    #[test]
    fn data_roles_come_before_the_map() {
        let sets = [
            ("role.read_cache.tier", "\"hmb\""),
            ("role.read_cache.size", "\"64KiB\""),
        ];
        let tiny = place("tiny", &sets);
        assert_eq!(tiny.data_bytes, 64 * KIB);
        assert_eq!(tiny.units(64 * KIB), 0);
        assert_eq!(tiny.effect(64 * KIB), (64 * KIB, 0));
        assert_eq!(tiny.units(96 * KIB), 8);
        assert_eq!(tiny.grant_for(1), 96 * KIB);
    }
}
