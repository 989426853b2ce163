//! What there is to choose.

use crate::question::drive;
use lodger_core::spec::{DriveSpec, HpbProtocol, Tier};
use lodger_run::{Drive, Error, drives, size};
use serde_json::{Value, json};

/// Memories in which the page offers to keep the part of the map that the controller has no room for.
const PLACES: [Tier; 3] = [Tier::Dram, Tier::Hmb, Tier::Cxl];
/// What a drive asks for that is given host memory here though it was built without: what Linux gives at most.
const PREFERRED: &str = "128MiB";
/// The least it takes.
const MIN: &str = "4MiB";

/// # Errors
/// If a drive of the collection is wrong.
pub(crate) fn answer() -> Result<Value, Error> {
    let all: Result<Vec<Value>, Error> = drives::names()
        .map(|name| Ok(told(&drive(name, &[])?)))
        .collect();
    Ok(json!({"version": env!("CARGO_PKG_VERSION"), "drives": all?}))
}

fn told(drive: &Drive) -> Value {
    let spec = drive.spec();
    let mut json = host_side(spec);
    json["name"] = json!(drive.name);
    json["title"] = json!(spec.name);
    json["capacity_bytes"] = json!(spec.capacity_bytes);
    json["slc"] = json!(spec.ftl.slc_superblocks > 0);
    let built = spec.roles.map.tiers.last().map(|tier| tier.tier);
    json["map"] = json!(built.map(Tier::name));
    let others = PLACES.into_iter().filter(|place| Some(*place) != built);
    json["places"] = others
        .filter_map(|place| self::place(drive, place))
        .collect();
    json
}

/// What concerns the host: memory it may lend, entries of the map it may keep.
fn host_side(spec: &DriveSpec) -> Value {
    let uses_hmb = (spec.roles.map.tiers.iter()).any(|tier| tier.tier == Tier::Hmb);
    let hmb = spec
        .tiers
        .hmb
        .as_ref()
        .map(|hmb| json!({"preferred_bytes": hmb.preferred_bytes, "min_bytes": hmb.min_bytes}));
    let integrity = match (&spec.tiers.hmb, &spec.hpb) {
        (Some(_), _) => Some("tier.hmb.integrity"),
        (None, Some(hpb)) if hpb.protocol == HpbProtocol::Paper => Some("hpb.integrity"),
        (None, _) => None,
    };
    json!({"hmb": hmb, "maps_in_hmb": uses_hmb, "integrity": integrity})
}

/// The drive with its map in another memory, and the values that make it so; `None` where they do not fit it.
fn place(drive: &Drive, place: Tier) -> Option<Value> {
    let spec = drive.spec();
    let near = spec.roles.map.tiers.iter().map(|tier| tier.tier);
    let mut tiers: Vec<&str> = near
        .filter(|tier| !PLACES.contains(tier))
        .map(Tier::name)
        .collect();
    tiers.push(place.name());
    let mut sets = vec![("role.map.tiers".to_owned(), tiers.join(","))];
    // The plain map has 4 bytes for each 4 KiB.
    let whole = size::show((spec.capacity_bytes >> 10).next_power_of_two()).replace(' ', "");
    let mut set = |key: &str, value: &str| sets.push((key.to_owned(), value.to_owned()));
    match place {
        Tier::Dram if spec.tiers.dram.is_none() => set("tier.dram.size", &whole),
        Tier::Cxl if spec.tiers.cxl.is_none() => set("tier.cxl.size", &whole),
        Tier::Hmb if spec.tiers.hmb.is_none() => {
            set("tier.hmb.preferred", PREFERRED);
            set("tier.hmb.min", MIN);
        }
        _ => {}
    }
    let pairs: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (&**key, &**value)).collect();
    let changed = self::drive(&drive.name, &pairs).ok()?;
    let mut json = host_side(changed.spec());
    json["map"] = json!(place.name());
    json["sets"] = json!(sets);
    Some(json)
}
