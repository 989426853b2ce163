//! Does advice count what the drive has of an offer, and not what is offered?

use super::*;
use crate::advise::search::Found;

/// The drive asks for 16 MiB of which it takes 4 MiB, one piece of Linux's.
const PIECES: [(&str, &str); 4] = [
    ("tier.hmb.preferred", "\"16MiB\""),
    ("tier.hmb.max_descriptors", "1"),
    ("role.read_cache.tier", "\"hmb\""),
    ("role.read_cache.size", "\"16MiB\""),
];
const READS: &str = "rw=randread\nsize=48m\niodepth=4\nnumber_ios=8000";

#[test]
fn what_the_drive_takes_is_what_counts() {
    let advice = advice(&config("tiny", &PIECES), READS, Goal::Within(0.01));
    let text = advice.text();
    let csv = advice.csv();
    assert_eq!(advice.place.yardstick_bytes(), 4 * MIB, "{text}");
    assert!(
        text.lines()
            .next()
            .unwrap()
            .contains("by `tier.hmb.max_descriptors`"),
        "{text}"
    );
    assert!(
        text.contains("\nwarning: the drive asks for 16 MiB"),
        "{text}"
    );
    assert!(
        text.contains("what the drive asks for, the drive takes 4 MiB of it"),
        "{text}"
    );
    let json = advice.json();
    for run in json["runs"].as_array().unwrap() {
        let usable = run["usable_bytes"].as_u64().unwrap();
        assert!(usable <= 4 * MIB, "{run}\n{csv}");
        assert_eq!(run["granted_bytes"], usable);
    }
}

/// "Enough: no host memory at all (within 5 % of 256 KiB ...)", of which the drive had none.
#[test]
fn memory_that_the_drive_never_has_is_not_compared_with() {
    let sets = [
        ("tier.hmb.preferred", "\"16MiB\""),
        ("tier.hmb.min_descriptor", "\"8MiB\""),
    ];
    let advice = advice(&config("tiny", &sets), READS, Goal::default());
    assert_eq!(advice.found, Found::Off);
    let text = advice.text();
    let answer = text.lines().next().unwrap();
    assert!(
        answer.contains("takes none by `tier.hmb.min_descriptor`"),
        "{text}"
    );
    assert!(!answer.contains("within"), "{text}");
    assert!(
        text.contains("\nwarning: the drive has no use for pieces"),
        "{text}"
    );
    // The null.
    let advice = super::advice(&config("tiny", &[]), READS, Goal::default());
    assert!(!advice.text().contains("warning: "), "{}", advice.text());
}
