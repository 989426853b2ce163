//! Is a recording read as it was written, and nonsense refused?

use super::*;

/// Random enough (SplitMix64).
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Rng(seed)
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((((mixed ^ (mixed >> 31)) >> 32) * u64::from(limit)) >> 32) as u32
    }
}

fn head() -> Head {
    Head {
        seed: 7,
        precondition: 1,
        drive_digest: digest("tiny"),
        drive: "Tiny ü".to_owned(),
        by: "1.2.3".to_owned(),
    }
}

fn any(rng: &mut Rng, at_ps: u64, commands: &mut u64) -> Event {
    match rng.below(6) {
        0 if *commands > 0 => Event::Taken {
            command: u64::from(rng.below(*commands as u32)),
            arrived_ps: at_ps - u64::from(rng.below(1000)).min(at_ps),
            status: STATUSES[rng.below(5) as usize],
        },
        1 => Event::HostMemory(u64::from(rng.below(u32::MAX)) << rng.below(32)),
        2 => [Event::Shutdown, Event::Ran, Event::Doubt(Doubt::Past)][rng.below(3) as usize],
        _ => {
            *commands += 1;
            let (op, purpose) = match rng.below(6) {
                4 => (Op::Read, Purpose::Verify),
                5 => (Op::Read, Purpose::Compare),
                op => (OPS[op as usize], Purpose::Deliver),
            };
            let number = |rng: &mut Rng| match op {
                Op::Flush => 0,
                _ => u64::from(rng.below(u32::MAX)) * SECTOR_BYTES,
            };
            let request = Request {
                tag: 0,
                queue: rng.below(64) as u16,
                op,
                fua: purpose == Purpose::Deliver && rng.below(2) == 0,
                offset_bytes: number(rng),
                length_bytes: number(rng),
            };
            Event::Command(request, purpose)
        }
    }
}

fn written(events: &[Recorded]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &head()).unwrap();
    for event in events {
        writer.put(event).unwrap();
    }
    bytes
}

fn drawn(seed: u64) -> Vec<Recorded> {
    let (mut rng, mut at_ps, mut commands) = (Rng::new(seed), 0, 0);
    let mut events: Vec<Recorded> = (0..200)
        .map(|_| {
            at_ps += u64::from(rng.below(u32::MAX)) * u64::from(rng.below(1000));
            let event = any(&mut rng, at_ps, &mut commands);
            Recorded { at_ps, event }
        })
        .collect();
    let event = Event::End;
    events.push(Recorded { at_ps, event });
    events
}

#[test]
fn what_is_written_is_read_and_cuts_are_seen() {
    for seed in 0..20 {
        let events = drawn(seed);
        let bytes = written(&events);
        let mut reader = Reader::new(&bytes[..]).unwrap();
        assert_eq!(*reader.head(), head());
        for event in &events {
            assert_eq!(reader.next_event().unwrap(), Some(*event));
        }
        assert_eq!(reader.next_event().unwrap(), None);
        assert!(!reader.is_cut());
        let head_bytes = written(&[]).len();
        for end in 0..bytes.len() - 1 {
            let reader = Reader::new(&bytes[..end]);
            assert_eq!(reader.is_ok(), end >= head_bytes, "{end}");
            let Ok(mut reader) = reader else { continue };
            while reader.next_event().unwrap().is_some() {}
            assert!(reader.is_cut());
        }
    }
}

/// What followed the end was left out in silence: a second recording behind the first, or what was damaged into an end.
#[test]
fn what_follows_the_end_of_a_recording_is_refused() {
    let events = drawn(1);
    let whole = written(&events);
    for more in [&[0][..], &whole] {
        let bytes = [&whole[..], more].concat();
        let mut reader = Reader::new(&bytes[..]).unwrap();
        for event in &events[..events.len() - 1] {
            assert_eq!(reader.next_event().unwrap(), Some(*event));
        }
        let error = reader.next_event().unwrap_err().to_string();
        assert!(error.contains("after its end"), "{error}");
        assert!(error.contains(&whole.len().to_string()), "{error}");
    }
}

/// Version 1 has no word for reads that do not go to the host, and else the same form.
#[test]
fn recordings_of_before_are_read() {
    let is_old = |recorded: &Recorded| {
        !matches!(
            recorded.event,
            Event::Command(_, Purpose::Verify | Purpose::Compare)
        )
    };
    let events: Vec<Recorded> = drawn(3).into_iter().take_while(is_old).collect();
    let mut bytes = written(&events);
    assert_eq!(bytes[8], 2);
    for version in [1, 2] {
        bytes[8] = version;
        let mut reader = Reader::new(&bytes[..]).unwrap();
        for event in &events {
            assert_eq!(reader.next_event().unwrap(), Some(*event));
        }
    }
    for version in [0, 3] {
        bytes[8] = version;
        let refused = Reader::new(&bytes[..]);
        assert!(matches!(refused, Err(ReadError::Version(of)) if of == version));
    }
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let bytes = written(&drawn(1));
    let mut rng = Rng::new(5);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut bytes = bytes.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u32) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        let Ok(mut reader) = Reader::new(&bytes[..]) else {
            refused += 1;
            continue;
        };
        loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    assert!(error.to_string().starts_with("byte "), "{error}");
                    refused += 1;
                    break;
                }
            }
        }
    }
    assert!(refused > 200, "{refused}");
    let mut other = bytes.clone();
    other[8] = 9;
    assert!(matches!(
        Reader::new(&other[..]),
        Err(ReadError::Version(9))
    ));
    assert!(matches!(
        Reader::new(&b"LODGREC "[..]),
        Err(ReadError::NotOne)
    ));
}
