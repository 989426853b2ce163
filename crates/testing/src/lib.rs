//! How many random cases a test tries, and with which random numbers: one way for all tests, so that a
//! longer run needs no edit.
//!
//! | variable | means |
//! |---|---|
//! | `LODGER_CASES=20000` | so many cases in every random test |
//! | `LODGER_CASES=x10` | ten times as many as usual, in each |
//! | `UPDATE_RECORDED=1` | results that are held against a record are recorded anew |
//! | `LODGER_SEED=7` | the same random numbers every time; without it, new ones |

use proptest::test_runner::{Config, RngSeed};

/// Cases that a test tries which usually tries `usual`: what `LODGER_CASES` says.
///
/// # Panics
/// If that is neither a number nor `x` and one: a soak that tests less than it says is worse than none.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    let said = std::env::var("LODGER_CASES").ok();
    chosen(usual, said.as_deref()).unwrap_or_else(|| {
        let said = said.unwrap_or_default();
        panic!("`LODGER_CASES` must be a number above 0, or `x` and one, found `{said}`")
    })
}

fn chosen(usual: u32, said: Option<&str>) -> Option<u32> {
    let Some(said) = said.filter(|said| !said.is_empty()) else {
        return Some(usual);
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    match said.strip_prefix('x') {
        Some(times) => Some(usual.saturating_mul(number(times)?)),
        None => number(said),
    }
}

/// What `LODGER_SEED` says: where a test that draws its own random numbers begins, if not where it likes.
///
/// # Panics
/// If it is no number.
#[must_use]
pub fn seed() -> Option<u64> {
    let said = std::env::var("LODGER_SEED")
        .ok()
        .filter(|said| !said.is_empty())?;
    let seed = said.parse();
    Some(seed.unwrap_or_else(|_| panic!("`LODGER_SEED` must be a number, found `{said}`")))
}

/// FNV-1a of a text: no more is asked of it than to differ.
#[must_use]
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Holds what is so now, a line each, against what a file recorded; with `UPDATE_RECORDED=1`, records it.
///
/// # Panics
/// If a line differs, with all that do, or the file cannot be read or written.
pub fn is_as_recorded(path: &str, now: &str) {
    if std::env::var_os("UPDATE_RECORDED").is_some_and(|said| !said.is_empty()) {
        std::fs::write(path, now).expect("the record can be written");
        return;
    }
    let recorded = std::fs::read_to_string(path).expect("there is a record");
    assert_eq!(now.lines().count(), recorded.lines().count(), "lines");
    let moved: Vec<String> = (now.lines().zip(recorded.lines()))
        .filter(|(now, recorded)| now != recorded)
        .map(|(now, recorded)| format!("now      {now}\nrecorded {recorded}"))
        .collect();
    let all = recorded.lines().count();
    assert!(
        moved.is_empty(),
        "{} of {all} moved:\n{}",
        moved.len(),
        moved.join("\n")
    );
}

/// How proptest runs a test that usually tries `usual` cases.
#[must_use]
pub fn config(usual: u32) -> Config {
    let seed = seed().map(RngSeed::Fixed);
    let config = Config::with_cases(cases(usual));
    Config {
        rng_seed: seed.unwrap_or(config.rng_seed),
        ..config
    }
}

/// The same for tests whose failing cases are not to be kept in a file.
#[must_use]
pub fn config_without_file(usual: u32) -> Config {
    Config {
        failure_persistence: None,
        ..config(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn a_number_sets_and_a_multiple_multiplies() {
        for (said, cases) in [
            (None, Some(48)),
            (Some(""), Some(48)),
            (Some("20000"), Some(20_000)),
            (Some("x10"), Some(480)),
            (Some("x4000000000"), Some(u32::MAX)),
            (Some("0"), None),
            (Some("x0"), None),
            (Some("-1"), None),
            (Some("many"), None),
        ] {
            assert_eq!(chosen(48, said), cases, "{said:?}");
        }
    }
}
