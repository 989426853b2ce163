//! The answer itself, in one line.

use super::goal::Goal;
use super::report::{achieved, with};
use super::search::Found;
use super::text::size;
use super::{Advice, caveats, sureness};

/// One line that answers the question.
pub(super) fn answer(advice: &Advice) -> String {
    // Who reads no further is not to take it for more.
    let enough = match caveats::short_run(advice) {
        Some(_) => "Enough for so short a run",
        None if sureness::is_turned_round(advice) => "Enough with this seed",
        None => "Enough",
    };
    match advice.found {
        Found::Off => format!("{enough}: {}", off(advice)),
        Found::Size { enough_bytes, .. } => format!("{enough}: {}", some(advice, enough_bytes)),
        Found::Nothing { best_bytes } => nothing(advice, best_bytes),
    }
}

/// The goal, and what it is compared with: `within 5 % of 38 MiB`.
fn against(advice: &Advice) -> String {
    let goal = advice.goal.words(&advice.reference);
    match advice.goal {
        Goal::Within(_) => format!("{goal} of {}", size(advice.place.yardstick_bytes())),
        Goal::Slo(_) => goal,
    }
}

fn with_all(advice: &Advice) -> String {
    let achieved = achieved(advice, &advice.reference);
    let all_bytes = advice.place.yardstick_bytes();
    let takes = all_it_takes(advice, all_bytes);
    format!("{achieved} with {}{takes}", size(all_bytes))
}

/// The run that stands for a size, in the goal's terms.
fn achieved_at(advice: &Advice, bytes: u64) -> String {
    achieved(advice, advice.run(bytes).unwrap_or(&advice.reference))
}

/// Why there is no more to compare with, where the drive takes less than it asks for.
fn all_it_takes(advice: &Advice, bytes: u64) -> String {
    let limit = advice.place.limit.filter(|limit| limit.bytes == bytes);
    limit.map_or(String::new(), |limit| {
        format!(", all that the drive takes by `{}`", limit.key)
    })
}

fn off(advice: &Advice) -> String {
    let without = achieved_at(advice, 0);
    match advice.place.limit.filter(|limit| limit.bytes == 0) {
        Some(limit) => format!(
            "no host memory at all, and the drive takes none by `{}` ({without})",
            limit.key
        ),
        None => format!(
            "no host memory at all ({}: {without} without, {})",
            against(advice),
            with_all(advice)
        ),
    }
}

fn some(advice: &Advice, enough_bytes: u64) -> String {
    let (enough, against) = (size(enough_bytes), against(advice));
    let achieved = achieved_at(advice, enough_bytes);
    let takes = all_it_takes(advice, enough_bytes);
    let all_bytes = advice.place.yardstick_bytes();
    if !takes.is_empty() {
        return format!("{enough}{takes} ({against}: {achieved})");
    }
    if enough_bytes == advice.place.preferred_bytes() {
        return format!("{enough}, all that the drive asks for ({against}: {achieved})");
    }
    let with_all = with_all(advice);
    if enough_bytes == all_bytes {
        return format!("{enough}, all that Linux gives by default ({against}: {with_all})");
    }
    format!("{enough} ({against}: {achieved} against {with_all})")
}

fn nothing(advice: &Advice, best_bytes: u64) -> String {
    let up_to = match advice.place.limit {
        Some(limit) if limit.bytes == 0 => {
            format!(", and the drive takes no host memory by `{}`", limit.key)
        }
        Some(limit) => format!(
            ", up to the {} that the drive takes by `{}`",
            size(limit.bytes),
            limit.key
        ),
        None => ", up to what the drive asks for".to_owned(),
    };
    format!(
        "Not enough at any size simulated{up_to}: {} is met by none, the best is {} {}",
        advice.goal.words(&advice.reference),
        achieved_at(advice, best_bytes),
        with(best_bytes)
    )
}
