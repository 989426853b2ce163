//! The references to the map that a workload makes, and what they tell about every size of host
//! memory: the single pass behind the curve.

use super::parts::{Group, Parts};
use super::place::Place;
use super::shadow::Shadow;
use super::stack::{Histogram, KEYS_MAX, KEYS_MAX_LONG, LONG, Sampled};
use lodger_core::controller::MapRole;
use lodger_core::controller::cache::{Cache, Direct};
use lodger_core::spec::{
    DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, MapTierSpec, Replacement, SLOT_BYTES, Tier,
};
use lodger_core::{Op, Precondition, Request};

const PAGE_SPAN_BYTES: u64 = ENTRIES_PER_TRANSLATION_PAGE * SLOT_BYTES;

/// How the curve is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Stack distances of an LRU cache.
    StackDistances,
    /// The map cache itself, at the sizes asked for.
    Direct,
}

/// What the workload asked for, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Trims and flushes.
    pub others: u64,
    /// Look-ups of the map by reads: one per command and translation page.
    pub lookups: u64,
    /// Of these, in pages of which nothing was ever written: answered without a look at flash.
    pub absent: u64,
    /// Of these, found in the drive's own memory although host memory were off.
    pub near: u64,
}

/// Consumes the requests in the order of submission.
#[derive(Debug)]
pub struct Stream {
    asked: Asked,
    capacity_bytes: u64,
    /// Bit per translation page: something of it was written.
    written: Vec<u64>,
    /// Bit per translation page: looked up or changed.
    touched: Vec<u64>,
    parts: Parts,
    near: Near,
    counter: Counter,
}

/// The drive's own memory in front of host memory, which works as if host memory were off.
#[derive(Debug)]
enum Near {
    None,
    /// It holds the whole map.
    All,
    Lru {
        unit_pages: u32,
        cache: Box<Cache<Direct>>,
    },
}

#[derive(Debug)]
enum Counter {
    Stack {
        unit_pages: u32,
        distances: Box<Sampled>,
    },
    Direct(Vec<(u64, Shadow)>),
}

impl Stream {
    /// For a drive with the map on host memory. `grants`: sizes to simulate where stack distances
    /// do not apply.
    #[must_use]
    pub fn new(
        spec: &DriveSpec,
        place: &Place,
        precondition: Precondition,
        grants: &[u64],
        seed: u64,
    ) -> Self {
        let bits = place.pages.div_ceil(64) as usize;
        let written = precondition != Precondition::None;
        let (near, counter) = match (Self::method(spec), &place.map) {
            (Method::StackDistances, Some(tier)) => {
                let distances = Box::new(Sampled::new(KEYS_MAX));
                let unit_pages = tier.unit_translation_pages;
                let counter = Counter::Stack {
                    unit_pages,
                    distances,
                };
                (Near::of(spec, place.pages, seed), counter)
            }
            _ => {
                let shadow = |&grant: &u64| {
                    let map_bytes = place.map_bytes(grant);
                    let role = &spec.roles.map;
                    let shadow = Shadow::new(role, place.pages, map_bytes, seed);
                    (grant, shadow)
                };
                (
                    Near::None,
                    Counter::Direct(grants.iter().map(shadow).collect()),
                )
            }
        };
        Stream {
            asked: Asked::default(),
            capacity_bytes: spec.capacity_bytes,
            written: vec![if written { u64::MAX } else { 0 }; bits],
            touched: vec![0; bits],
            parts: Parts::new(place.pages),
            near,
            counter,
        }
    }

    /// The same for a workload of so many requests, where that is known: of a long one, fewer
    /// units are followed.
    #[must_use]
    pub fn expecting(mut self, requests: Option<u64>) -> Self {
        if let Counter::Stack { distances, .. } = &mut self.counter
            && requests.is_some_and(|requests| requests >= LONG)
        {
            **distances = Sampled::new(KEYS_MAX_LONG);
        }
        self
    }

    /// Stack distances describe an LRU cache behind at most one other, of which it keeps its own
    /// copies.
    #[must_use]
    pub fn method(spec: &DriveSpec) -> Method {
        let map = &spec.roles.map;
        let last = map.tiers.last().is_some_and(|t| t.tier == Tier::Hmb);
        if map.replacement == Replacement::Lru && !map.exclusive && last && map.tiers.len() <= 2 {
            Method::StackDistances
        } else {
            Method::Direct
        }
    }

    /// A job has submitted a request.
    pub fn submitted(&mut self, job: usize, request: &Request) {
        match request.op {
            Op::Read => self.asked.reads += 1,
            Op::Write => self.asked.writes += 1,
            Op::Trim | Op::Flush => self.asked.others += 1,
        }
        let end_bytes = request.offset_bytes.saturating_add(request.length_bytes);
        if request.op == Op::Flush || request.length_bytes == 0 || end_bytes > self.capacity_bytes {
            return;
        }
        let first = (request.offset_bytes / PAGE_SPAN_BYTES) as u32;
        let last = ((end_bytes - 1) / PAGE_SPAN_BYTES) as u32;
        for page in first..=last {
            match request.op {
                Op::Read => self.read(job, page),
                Op::Write => self.write(page, first, last, request),
                Op::Trim => self.trim(page, request.offset_bytes, end_bytes),
                Op::Flush => {}
            }
        }
    }

    fn read(&mut self, job: usize, page: u32) {
        self.asked.lookups += 1;
        if is_set(&self.written, page) {
            set(&mut self.touched, page);
            self.parts.look_up(job, page);
        } else {
            self.asked.absent += 1;
        }
        self.look_up(page, true);
    }

    fn write(&mut self, page: u32, first: u32, last: u32, request: &Request) {
        let end_bytes = request.offset_bytes + request.length_bytes;
        let partial = (page == first && !request.offset_bytes.is_multiple_of(SLOT_BYTES))
            || (page == last && !end_bytes.is_multiple_of(SLOT_BYTES));
        set(&mut self.touched, page);
        if partial {
            // The rest of a partly written slot is read from flash.
            self.look_up(page, false);
        }
        self.update(page);
        set(&mut self.written, page);
    }

    fn trim(&mut self, page: u32, offset_bytes: u64, end_bytes: u64) {
        let start = u64::from(page) * PAGE_SPAN_BYTES;
        let end = (start + PAGE_SPAN_BYTES).min(self.capacity_bytes);
        if offset_bytes <= start && end <= end_bytes {
            clear(&mut self.written, page);
        } else if is_set(&self.written, page) {
            self.update(page);
        }
    }

    fn look_up(&mut self, page: u32, counted: bool) {
        let written = is_set(&self.written, page);
        match &mut self.counter {
            Counter::Direct(shadows) => {
                for (_, shadow) in shadows {
                    shadow.look_up(page, written, counted);
                }
            }
            // Of what was never written there is nothing to keep.
            Counter::Stack { .. } if !written => {}
            Counter::Stack {
                unit_pages,
                distances,
            } => {
                if self.near.touch(page) {
                    self.asked.near += u64::from(counted);
                } else {
                    self.near.insert(page);
                    distances.touch(page / *unit_pages, counted);
                }
            }
        }
    }

    /// An entry changes: its page is brought in unless it stands in a cache; a use it is not.
    fn update(&mut self, page: u32) {
        let written = is_set(&self.written, page);
        match &mut self.counter {
            Counter::Direct(shadows) => {
                for (_, shadow) in shadows {
                    shadow.update(page, written);
                }
            }
            Counter::Stack {
                unit_pages,
                distances,
            } => {
                if !self.near.contains(page) {
                    self.near.insert(page);
                    distances.touch(page / *unit_pages, false);
                }
            }
        }
    }

    /// What was learnt.
    #[must_use]
    pub fn finish(self) -> Learnt {
        let touched = self.touched.iter().map(|word| u64::from(word.count_ones()));
        let hits = match self.counter {
            Counter::Stack { distances, .. } => Hits::Every {
                share: distances.share(),
                histogram: distances.histogram(),
            },
            Counter::Direct(shadows) => {
                Hits::At(shadows.into_iter().map(|(g, s)| (g, s.hits)).collect())
            }
        };
        Learnt {
            asked: self.asked,
            touched_pages: touched.sum(),
            groups: self.parts.groups(),
            hits,
        }
    }
}

impl Near {
    fn of(spec: &DriveSpec, pages: u32, seed: u64) -> Self {
        let Some(tier) = spec.roles.map.tiers.iter().find(|t| t.tier != Tier::Hmb) else {
            return Near::None;
        };
        let MapTierSpec {
            unit_translation_pages: unit_pages,
            bytes,
            ..
        } = *tier;
        let units = pages.div_ceil(unit_pages);
        match MapRole::units_that_fit(tier, bytes) {
            0 => Near::None,
            capacity if capacity >= units => Near::All,
            capacity => Near::Lru {
                unit_pages,
                cache: Box::new(Cache::new(
                    Direct::new(units),
                    capacity,
                    Replacement::Lru,
                    seed,
                )),
            },
        }
    }

    fn touch(&mut self, page: u32) -> bool {
        match self {
            Near::None => false,
            Near::All => true,
            Near::Lru { unit_pages, cache } => cache.touch(page / *unit_pages),
        }
    }

    fn contains(&self, page: u32) -> bool {
        match self {
            Near::None => false,
            Near::All => true,
            Near::Lru { unit_pages, cache } => cache.contains(page / *unit_pages),
        }
    }

    fn insert(&mut self, page: u32) {
        if let Near::Lru { unit_pages, cache } = self {
            cache.insert(page / *unit_pages, false);
        }
    }
}

fn is_set(bits: &[u64], page: u32) -> bool {
    bits[page as usize / 64] >> (page % 64) & 1 != 0
}

fn set(bits: &mut [u64], page: u32) {
    bits[page as usize / 64] |= 1 << (page % 64);
}

fn clear(bits: &mut [u64], page: u32) {
    bits[page as usize / 64] &= !(1 << (page % 64));
}

/// What a stream taught.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// What was asked.
    pub asked: Asked,
    /// Different translation pages in use.
    pub touched_pages: u64,
    /// Those that reads look up, by who does.
    pub groups: Vec<Group>,
    /// Hits by size.
    pub hits: Hits,
}

/// Look-ups that host memory answers.
#[derive(Clone, Debug)]
pub enum Hits {
    /// For every number of units, besides those in pages never written and those the drive's own
    /// memory answers.
    Every {
        /// Share of the units followed; 1 when exact.
        share: f64,
        /// Hits by units.
        histogram: Histogram,
    },
    /// At the grants simulated (bytes), all hits.
    At(Vec<(u64, u64)>),
}
