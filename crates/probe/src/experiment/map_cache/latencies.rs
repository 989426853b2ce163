//! What single reads take by where their map entry was, as numbers of the report.

use super::super::walk::Walk;
use super::SAME;
use crate::findings::Findings;
use crate::infer::map::MapArm;
use crate::stats::Estimate;

/// What reads told beside the edges: latencies of single reads, ns, by where their map entry was.
pub(super) struct Took {
    /// Nearest memory.
    pub near: Estimate,
    /// Far and wide, where nothing missed.
    pub flat: Option<Estimate>,
    /// The largest memory, and flash; none if there is only one level.
    pub far: Option<(Estimate, Estimate)>,
    /// How its units can be counted again; none where their size is not known.
    pub walk: Option<Walk>,
}

/// Keeps them, of one state of host memory.
pub(super) fn note_latencies(findings: &mut Findings, name: &str, took: &Took) {
    let suffix = if name == "as found" { "" } else { name };
    let join = |base: &str| format!("{base}_{suffix}").trim_end_matches('_').to_owned();
    findings.quantity(&join("read_near"), "us", took.near.scaled(1e-3));
    if let Some((hit, miss)) = took.far {
        findings.quantity(&join("map_hit"), "us", hit.scaled(1e-3));
        findings.quantity(&join("map_miss"), "us", miss.scaled(1e-3));
    }
}

/// What a read takes, one at a time, when its entry is in the drive's memory, in host memory, and in
/// flash: where host memory reaches farther. Only what was told by the same kinds of pages is set side by side:
/// where pages differ, hits in host memory and misses are of the fastest kind, and reads near each other of all.
pub(super) fn note_memories(findings: &mut Findings, flat: Option<Estimate>) {
    let arm = |name: &str| findings.roles.map.arms.get(name).copied();
    let (Some(on), Some(off)) = (arm("on"), arm("off")) else {
        return;
    };
    let reach = |arm: &MapArm| arm.reach_bytes.amount();
    if reach(&on) < SAME * reach(&off) || reach(&on) == reach(&off) {
        return;
    }
    let value = |findings: &Findings, name: &str| findings.quantities.get(name).map(|q| q.value);
    // Without a second level with it on, all that is read far and wide hits there.
    let hit = value(findings, "map_hit_on").or(flat.map(|ns| ns.scaled(1e-3)));
    let near = value(findings, "read_near_on").filter(|_| !on.is_by_kind());
    if on.is_by_kind() {
        let note = "pages differ in latency: what a read takes whose map entry is in host memory was told by pages of the \
                    fastest kind, and what it takes with the entry in the drive's own memory by all, so that the two are \
                    not set side by side";
        if !findings.notes.iter().any(|said| said == note) {
            findings.notes.push(note.to_owned());
        }
    }
    // What a miss takes shows then with it off, of which pages of one kind would be no match for hits of all.
    let miss = value(findings, "map_miss_on");
    let alike = on.is_by_kind() == off.is_by_kind();
    let miss = miss.or(value(findings, "map_miss_off").filter(|_| alike));
    for (name, found) in [("hit_sram", near), ("hit_hmb", hit), ("miss", miss)] {
        if let Some(value) = found {
            findings.quantity(name, "us", value);
        }
    }
}
