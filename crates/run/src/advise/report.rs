//! The advice for people: the answer first, then what it rests on.

use super::curve::{Curve, Point, thinned};
use super::goal::Goal;
use super::measure::{Run, Subject};
use super::place::Place;
use super::search::Found;
use super::stream::{Asked, Method};
use super::text::{count, grouped, percent, short, size, time};
use super::{Advice, RASPBERRY_PI_BYTES, answer::answer, caveats, sureness};
use lodger_core::host::hmb::{CHUNK_BYTES_MAX, LINUX_CAP_BYTES};
use lodger_core::spec::SLOT_BYTES;
use std::fmt::Write;

/// Width of the plot's bars.
const BAR_COLUMNS: usize = 40;
/// Less than this share is the same.
const WORTH_A_WORD: f64 = 0.02;
/// Share of the look-ups that the drive's own memory serves from which on the working set fits there.
const FITS_MIN: f64 = 0.9;
/// Most lines of the plot.
const BARS_MAX: usize = 16;

pub(super) fn text(advice: &Advice) -> String {
    let mut out = format!("{}\n\n", answer(advice));
    let _ = writeln!(out, "drive     {}", drive(advice));
    let _ = writeln!(out, "workload  {}", workload(advice));
    out.push('\n');
    table(advice, &mut out);
    // Bars of nothing would say that everything hits.
    if let Some(curve) = &advice.curve
        && curve.asked().lookups > 0
    {
        plot(advice, curve, &mut out);
    }
    let (warnings, notes) = (warnings(advice), plain_notes(advice));
    if !warnings.is_empty() || !notes.is_empty() {
        out.push('\n');
    }
    // As `simulate` has them: they are said however quiet the command is.
    for warning in warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// The drive, and what it asks of its host.
pub(super) fn drive(advice: &Advice) -> String {
    let place = &advice.place;
    format!(
        "{} ({}): asks for {}, takes {} at least{}",
        advice.drive.name,
        advice.drive.parsed.spec.name,
        size(place.preferred_bytes()),
        size(place.min_bytes()),
        if place.rounds() {
            ", uses powers of two"
        } else {
            ""
        }
    )
}

/// With so much host memory.
pub(super) fn with(bytes: u64) -> String {
    match bytes {
        0 => "without host memory".to_owned(),
        bytes => format!("with {}", size(bytes)),
    }
}

/// A run's value in the goal's terms; a rate that the workload sets itself says nothing.
pub(super) fn achieved(advice: &Advice, run: &Run) -> String {
    let mut words = match advice.goal {
        Goal::Within(_) if advice.is_open_loop() => {
            format!("mean{} {}", run.of_subject(), time(run.mean_ns()))
        }
        goal => goal.achieved(run),
    };
    if advice.all_decide() {
        let _ = write!(words, ", of all requests {}", time(run.mean_of_all_ns()));
    }
    words
}

/// What was asked of the drive.
pub(super) fn workload(advice: &Advice) -> String {
    let run = &advice.reference;
    let (reads, writes) = (run.read.count, run.write.count);
    let all = (reads + writes).max(1) as f64;
    let mut text = advice.workload.clone();
    let _ = write!(text, "; {} reads", percent(reads as f64 / all));
    if let Some(curve) = &advice.curve {
        let reach = curve.touched_pages() * 1024 * SLOT_BYTES;
        let _ = write!(text, "; the map pages in use cover {}", size(reach));
    }
    text
}

/// Whether there is a column of p99.9: not of too few requests.
fn shows_p99_9(advice: &Advice) -> bool {
    advice.reference.sure_percentile_ns(99.9).is_some()
}

/// Names of the columns.
pub(super) fn header(advice: &Advice) -> Vec<&'static str> {
    let (rate, change) = match advice.reference.subject {
        Subject::Commits => (Subject::Commits.rate(), "change"),
        other => (other.rate(), "IOPS change"),
    };
    let mut names = vec!["host memory", "map hits", rate, "mean", "p99"];
    names.extend(shows_p99_9(advice).then_some("p99.9"));
    names.extend(advice.all_decide().then_some("mean of all"));
    names.extend([change, "p99 change"]);
    names
}

/// What stands in a row for each size; the remark comes after these.
pub(super) fn cells(advice: &Advice, bytes: u64, run: &Run) -> Vec<String> {
    let loss = advice.loss(run);
    let mut cells = vec![
        size(bytes),
        run.lookups.hit_ratio().map_or("-".to_owned(), percent),
        count(run.rate()),
        time(run.mean_ns()),
        time(run.percentile_ns(99.0) as f64),
    ];
    let p99_9 = run.sure_percentile_ns(99.9);
    cells.extend(shows_p99_9(advice).then(|| p99_9.map_or("-".to_owned(), |ns| time(ns as f64))));
    cells.extend(advice.all_decide().then(|| time(run.mean_of_all_ns())));
    cells.extend([change(-loss.rate), change(loss.p99)]);
    cells
}

fn table(advice: &Advice, out: &mut String) {
    let header = header(advice);
    let names = header.iter().map(|name| (*name).to_owned());
    let mut lines = vec![(names.collect(), String::new())];
    for (bytes, run) in &advice.rows {
        lines.push((cells(advice, *bytes, run), remark(advice, *bytes)));
    }
    let columns = header.len();
    let widest = |c: usize| lines.iter().map(|(cells, _)| cells[c].len()).max();
    let widths: Vec<usize> = (0..columns).map(|c| widest(c).unwrap_or(0)).collect();
    for (cells, remark) in lines {
        let mut line = format!("  {:<1$}", cells[0], widths[0]);
        for column in 1..columns {
            let _ = write!(line, "  {:>1$}", cells[column], widths[column]);
        }
        if !remark.is_empty() {
            let _ = write!(line, "  {remark}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let _ = writeln!(out, "  {}", legend(advice));
}

/// What the numbers of the table are.
pub(super) fn legend(advice: &Advice) -> String {
    let kind = advice.reference.subject.name();
    let but = match advice.all_decide() {
        true => ", but for the mean of all",
        false => "",
    };
    format!(
        "latencies are those of {kind}{but}; changes are against {}; {} simulated",
        size(advice.place.yardstick_bytes()),
        match advice.simulations {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        }
    )
}

fn change(share: f64) -> String {
    match share * 100.0 {
        percent if percent.abs() < 0.05 => "-".to_owned(),
        percent => format!("{percent:+.1} %"),
    }
}

/// What is special about a size.
pub(super) fn remark(advice: &Advice, bytes: u64) -> String {
    let place = &advice.place;
    let mut words = Vec::new();
    if let Found::Size { enough_bytes, .. } = advice.found
        && enough_bytes == bytes
    {
        words.push("enough".to_owned());
    }
    if let Found::Size { below_bytes, .. } = advice.found
        && below_bytes == bytes
    {
        words.push("not enough".to_owned());
    }
    if bytes == place.preferred_bytes() {
        words.push("what the drive asks for".to_owned());
    }
    let asked_for = bytes <= place.preferred_bytes();
    if bytes == LINUX_CAP_BYTES && asked_for {
        words.push("Linux gives no more by default".to_owned());
    }
    if bytes == RASPBERRY_PI_BYTES && asked_for {
        words.push("Raspberry Pi OS gives no more by default".to_owned());
    }
    if bytes > 0 && bytes < place.min_bytes() {
        words.push("below the drive's minimum: as off".to_owned());
    } else if bytes > 0 {
        words.extend(part_taken(place, bytes));
    }
    if !asked_for {
        words.push("more than the drive asks for".to_owned());
    }
    if let Some(curve) = &advice.curve {
        if curve.knees.contains(&bytes) {
            words.push("bend of the curve".to_owned());
        }
        if bytes > 0 && curve.useful_bytes == bytes {
            words.push("the curve ends here".to_owned());
        }
    }
    words.join(", ")
}

/// Of what is offered, the drive may take a part, in pieces as the host gives them.
fn part_taken(place: &Place, bytes: u64) -> Option<String> {
    match place.granted_bytes(bytes) {
        0 => Some("the drive takes none of it: as off".to_owned()),
        granted if granted < bytes => Some(format!("the drive takes {} of it", size(granted))),
        _ => None,
    }
}

fn plot(advice: &Advice, curve: &Curve, out: &mut String) {
    let how = match curve.method {
        Method::StackDistances if curve.sampled_share() < 1.0 => format!(
            "LRU stack distances of {} of the map, sampled",
            percent(curve.sampled_share())
        ),
        Method::StackDistances => "LRU stack distances, none left out".to_owned(),
        Method::Direct => "the drive's policy, simulated at these sizes".to_owned(),
    };
    let _ = writeln!(
        out,
        "\nmap look-ups that need no read from flash of their own, of {} ({how})",
        grouped(curve.asked().lookups)
    );
    let points = bars(advice, curve);
    let width = points
        .iter()
        .map(|p| size(p.hmb_bytes).len())
        .max()
        .unwrap_or(0);
    let _ = writeln!(out, "  {:>width$}    curve  simulated", "");
    for point in points {
        // What the drive does is worth more than what its cache alone would do.
        let simulated = advice
            .run(point.hmb_bytes)
            .and_then(|run| run.lookups.without_read());
        let filled = simulated.unwrap_or(point.hit_ratio) * BAR_COLUMNS as f64;
        let filled = (filled.round() as usize).min(BAR_COLUMNS);
        let _ = writeln!(
            out,
            "  {:>width$}  {:>7}  {:>9} |{}{}|",
            size(point.hmb_bytes),
            percent(point.hit_ratio),
            simulated.map_or("".to_owned(), percent),
            "#".repeat(filled),
            " ".repeat(BAR_COLUMNS - filled),
        );
    }
}

/// Points for the plot: a bar for each size of note, and some in between.
fn bars(advice: &Advice, curve: &Curve) -> Vec<Point> {
    let top = curve.useful_bytes.max(match advice.found {
        Found::Size { enough_bytes, .. } => enough_bytes,
        _ => 0,
    });
    // One bar beyond the end of the curve shows that it is one.
    let end = curve.points.partition_point(|p| p.hmb_bytes <= top) + 1;
    let shown = &curve.points[..end.min(curve.points.len())];
    let sizes = shown.iter().map(|p| p.hmb_bytes).filter(|bytes| *bytes > 0);
    let mut kept = thinned(sizes.collect(), BARS_MAX - 1);
    kept.push(0);
    kept.extend(advice.rows.iter().map(|(simulated, _)| *simulated));
    shown
        .iter()
        .filter(|p| kept.contains(&p.hmb_bytes))
        .copied()
        .collect()
}

/// All that is said besides.
pub(super) fn notes(advice: &Advice) -> Vec<String> {
    let mut all = warnings(advice);
    all.extend(plain_notes(advice));
    all
}

/// What makes the result doubtful.
fn warnings(advice: &Advice) -> Vec<String> {
    let mut warnings = advice.reference.warnings.clone();
    // Where the drive has none at all the run says so itself.
    let limit = advice.place.limit.filter(|limit| limit.bytes > 0);
    warnings.extend(limit.map(|limit| {
        format!(
            "the drive asks for {} of host memory and takes {} at most, as the host gives pieces of {} (`{}`): a run with \
             more is the run with that",
            size(advice.place.preferred_bytes()),
            size(limit.bytes),
            size(CHUNK_BYTES_MAX),
            limit.key,
        )
    }));
    warnings
}

/// What the user should know besides.
fn plain_notes(advice: &Advice) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(caveats::falls_behind(advice).or_else(|| rate_note(advice)));
    notes.extend(caveats::driver_keeps(advice));
    notes.extend(caveats::short_run(advice));
    notes.extend(sureness::few_requests(advice));
    notes.extend(sureness::another_seed(advice));
    notes.extend(sureness::sizes_between(advice));
    notes.extend(sureness::tail_that_loses(advice));
    notes.extend(caveats::jobs_that_lose(advice));
    notes.extend(caveats::less_is_better(advice));
    notes.extend(beyond_help(advice));
    notes.extend(caveats::wear(advice));
    notes.extend(own_memory(advice));
    notes.extend(deviation(advice));
    notes.extend(host_limits(advice));
    notes.extend(more_than_asked(advice));
    notes.extend(not_monotone(advice));
    if advice.place.data_bytes > 0 {
        notes.push(format!(
            "of host memory, the first {} hold data (write buffer, read cache), not the map",
            size(advice.place.data_bytes)
        ));
    }
    notes
}

fn rate_note(advice: &Advice) -> Option<String> {
    if advice.is_logging {
        let note = "a database asks when its clients commit: its transactions and commits are what counts here, not \
                    single requests; `lodger compare` shows both";
        return Some(note.to_owned());
    }
    advice.is_open_loop().then(|| {
        "requests come at their recorded instants, so IOPS are the workload's; `--replay closed` \
         shows what the drive could do"
            .to_owned()
    })
}

/// The part of the workload whose latency host memory cannot speed up.
fn beyond_help(advice: &Advice) -> Option<String> {
    let run = &advice.reference;
    let all = run.read.count + run.write.count;
    let mut parts = Vec::new();
    // Only what the table bears out.
    let unchanged = |off: &Run| {
        let slower = off.write.mean_ns / run.write.mean_ns - 1.0;
        let fewer = advice.loss(off).rate;
        slower.abs() < WORTH_A_WORD && (run.read.count > 0 || fewer.abs() < WORTH_A_WORD)
    };
    let faster = |other: &Run| run.write.mean_ns / other.write.mean_ns - 1.0 > WORTH_A_WORD;
    let helped = advice.rows.iter().any(|(_, other)| faster(other));
    if run.write.count > 0 && !helped && advice.run(0).is_some_and(unchanged) {
        let share = run.write.count as f64 / all as f64;
        parts.push(format!(
            "writes ({} of the requests) take as long without it",
            percent(share)
        ));
    }
    if run.unwritten_bytes > 0 && run.read_bytes > 0 {
        let share = (run.unwritten_bytes as f64 / run.read_bytes as f64).min(1.0);
        parts.push(format!(
            "reads of what was never written ({} of the bytes read) need neither map nor flash",
            percent(share)
        ));
    }
    (!parts.is_empty()).then(|| format!("host memory cannot speed up: {}", parts.join("; ")))
}

/// Host memory buys nothing when the drive's own memory does the work.
fn own_memory(advice: &Advice) -> Option<String> {
    let curve = advice.curve.as_ref()?;
    let Asked {
        lookups,
        absent,
        near,
        ..
    } = curve.asked();
    let lost = advice.run(0).map_or(0.0, |off| {
        let loss = advice.loss(off);
        loss.rate
            .max(loss.mean)
            .max(off.longer_than(&advice.reference))
    });
    if lookups == 0 {
        let mut note = "nothing is read, so no read looks the map up".to_owned();
        if lost >= WORTH_A_WORD {
            note.push_str("; host memory helps the writes, whose entries change there");
        }
        return Some(note);
    }
    let served = (absent + near) as f64 / lookups as f64;
    let gain = curve.hit_ratio(curve.useful_bytes) - curve.hit_ratio(0);
    // Of what is looked up once, nothing is served by any.
    let fits = match served >= FITS_MIN {
        true => "the working set fits there",
        false => "host memory serves no more of them here",
    };
    let loses = caveats::jobs_that_lose(advice).or_else(|| sureness::tail_that_loses(advice));
    let buys = match (lost < WORTH_A_WORD, loses) {
        (true, None) => format!(": {fits}, and host memory buys nothing"),
        // A few look-ups may be all of a job's, or its slowest.
        (true, Some(_)) => String::new(),
        (false, _) => {
            format!(": {fits}; host memory helps the writes, whose entries change there")
        }
    };
    (curve.method == Method::StackDistances && gain < 0.005).then(|| {
        format!(
            "the drive's own memory serves {} of the look-ups{buys}",
            percent(served)
        )
    })
}

/// Where the drive does otherwise than the curve says.
fn deviation(advice: &Advice) -> Option<String> {
    let curve = advice.curve.as_ref()?;
    let hit_ratio = |run: &Run| run.lookups.hit_ratio().unwrap_or(0.0);
    if advice.reference.lookups.all == 0 {
        return None;
    }
    let gap = |bytes: u64, run: &Run| curve.hit_ratio(bytes) - hit_ratio(run);
    // Between the sizes of a direct simulation, the curve is only a lower bound.
    let exact = |row: &&(u64, Run)| {
        let known = curve.points.iter().any(|point| point.hmb_bytes == row.0);
        known || curve.method == Method::StackDistances
    };
    let (bytes, run) = advice
        .rows
        .iter()
        .filter(exact)
        .max_by(|a, b| gap(a.0, &a.1).abs().total_cmp(&gap(b.0, &b.1).abs()))?;
    let points = gap(*bytes, run) * 100.0;
    if points.abs() < 1.0 {
        return None;
    }
    let joined = run.lookups.joined as f64 / run.lookups.all.max(1) as f64 * 100.0;
    let mut note = format!(
        "the simulated drive has {} points {} hits than the curve, at {} ({} against {}): the \
         table shows the simulated ones",
        short(points.abs()),
        if points > 0.0 { "fewer" } else { "more" },
        size(*bytes),
        percent(hit_ratio(run)),
        percent(curve.hit_ratio(*bytes)),
    );
    if points > 0.0 && joined >= 0.1 {
        let _ = write!(
            note,
            "; {} points waited for a page that another request was reading already, hits to the \
             curve",
            short(joined)
        );
    }
    if points < 0.0 && run.write.count > 0 {
        note.push_str(
            "; changed parts of the map that gave way are still found while they wait to be \
             written",
        );
    }
    let units = large_units(advice);
    if points - joined >= 0.5 && !units.is_empty() {
        let _ = write!(
            note,
            "; the rest missed units that were still being filled ({})",
            units.join(", ")
        );
    }
    Some(note)
}

/// Caching units of more than one translation page, by memory.
fn large_units(advice: &Advice) -> Vec<String> {
    let tiers = advice.drive.parsed.spec.roles.map.tiers.iter();
    tiers
        .filter(|tier| tier.unit_translation_pages > 1)
        .map(|tier| {
            let bytes = u64::from(tier.unit_translation_pages) * SLOT_BYTES;
            format!("{} in {}", size(bytes), tier.tier.name())
        })
        .collect()
}

/// What hosts give, against what is advised.
fn host_limits(advice: &Advice) -> Option<String> {
    match advice.found {
        Found::Size { enough_bytes, .. } if enough_bytes > LINUX_CAP_BYTES => Some(format!(
            "Linux gives {} at most by default: set `nvme.max_host_mem_size_mb={}`",
            size(LINUX_CAP_BYTES),
            enough_bytes.div_ceil(1 << 20)
        )),
        _ => None,
    }
}

/// What a drive would do with more than it asks for.
fn more_than_asked(advice: &Advice) -> Option<String> {
    // A gain of less is not worth a word.
    const GAIN_MIN: f64 = 0.1;
    let preferred_bytes = advice.place.preferred_bytes();
    let reference = &advice.reference;
    let (bytes, run) = advice.rows.iter().find(|(bytes, run)| {
        let gain = (run.rate() / reference.rate()).max(reference.mean_ns() / run.mean_ns()) - 1.0;
        let meets =
            matches!(advice.found, Found::Nothing { .. }) && advice.goal.is_met(run, reference);
        *bytes > preferred_bytes && (gain >= GAIN_MIN || meets)
    })?;
    Some(format!(
        "with {} it would be {}, but the drive asks for {}, and Linux gives no more than is asked \
         for",
        size(*bytes),
        achieved(advice, run),
        size(preferred_bytes)
    ))
}

/// More memory can be worse where filling large units gets in the way.
fn not_monotone(advice: &Advice) -> Option<String> {
    let enough_bytes = advice.found.enough_bytes()?;
    let worse: Vec<String> = advice
        .rows
        .iter()
        .filter(|(bytes, run)| *bytes > enough_bytes && !advice.goal.is_met(run, &advice.reference))
        .map(|(bytes, _)| size(*bytes))
        .collect();
    (!worse.is_empty()).then(|| {
        format!(
            "more is not always better here: {} would not be enough again",
            worse.join(", ")
        )
    })
}
