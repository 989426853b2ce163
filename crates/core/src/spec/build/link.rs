//! The link: PCIe or UFS, and its rate.

use crate::spec::error::SpecError;
use crate::spec::parse::Values;
use crate::spec::units::Pcie;
use crate::spec::value::Value;
use crate::spec::{LinkProtocol, LinkSpec, ufs};

/// Of drives that say nothing; no maker does.
const COMMAND_SLOTS: u32 = 256;

pub(super) fn link(values: &mut Values) -> Result<LinkSpec, SpecError> {
    let is_ufs = values.has("link.ufs");
    if is_ufs && values.has("link.pcie") {
        let must = "must not be given beside `link.pcie`: a drive has one link";
        return Err(values.contradiction("link.ufs", must));
    }
    let slots = ufs::TRANSFER_REQUEST_SLOTS;
    if !values.has("controller.command_slots") {
        let number = if is_ufs { slots } else { COMMAND_SLOTS };
        values.derive("controller.command_slots", Value::Number(u64::from(number)));
    }
    if is_ufs && values.small("controller.command_slots") > slots {
        let must = format!("must be at most {slots} with `link.ufs`");
        return Err(values.contradiction("controller.command_slots", &must));
    }
    let rate = match (values.get("link.ufs"), values.get("link.pcie")) {
        (Some(Value::Word(link)), None) => Some(ufs::bytes_per_s(link)),
        (None, Some(Value::Pcie(pcie))) => Some(Pcie::bytes_per_s(*pcie)),
        (None, None) => None,
        (ufs, pcie) => unreachable!("one link: {ufs:?}, {pcie:?}"),
    };
    if let (false, Some(rate)) = (values.has("link.rate"), rate) {
        values.derive("link.rate", Value::Number(rate));
    }
    Ok(LinkSpec {
        protocol: if is_ufs {
            LinkProtocol::Ufs
        } else {
            LinkProtocol::Pcie
        },
        bytes_per_s: values.number("link.rate"),
        max_payload_bytes: values.small("link.max_payload"),
        packet_overhead_bytes: values.small("link.packet_overhead"),
        one_way_ps: values.number("link.one_way"),
        host_memory_ps: values.number("link.host_memory"),
        host_memory_bytes_per_s: values.has("host.memory.rate").then(|| {
            let left = 1.0 - values.ratio("host.memory.load");
            (values.number("host.memory.rate") as f64 * left).round() as u64
        }),
    })
}
