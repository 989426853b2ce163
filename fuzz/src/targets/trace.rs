//! Block traces: every format, recognised or named.

use super::follow;
use lodger_workload::trace::convert::convert;
use lodger_workload::trace::{
    DeviceChoice, Fit, Format, Mode, Options, TimeUnit, Trace, info, load,
};

const DRIVE_BYTES: u64 = 64 << 20;

/// Two bytes that choose how it is read, and the file.
pub fn file(data: &[u8]) {
    let [how, more, text @ ..] = data else { return };
    let device = match more & 3 {
        0 => DeviceChoice::All,
        1 => DeviceChoice::Named("0".to_owned()),
        _ => DeviceChoice::Busiest,
    };
    let units = [
        None,
        Some(TimeUnit::Milliseconds),
        Some(TimeUnit::Nanoseconds),
    ];
    let options = Options {
        // Every second time it is recognised.
        format: Format::ALL
            .get(usize::from(how >> 1))
            .copied()
            .filter(|_| how & 1 == 1),
        device,
        time_unit: units[usize::from(more >> 2) % units.len()],
        action: (more & 0x40 != 0).then_some('D'),
        skip_malformed: more & 0x80 != 0,
        records_max: 100_000,
    };
    let Ok((trace, _)) = load(text, "file", &options) else {
        return;
    };
    assert!(!trace.is_empty() && trace.len() <= options.records_max);
    let _ = info::info(&trace);
    let to = Format::ALL[usize::from(how >> 1) % Format::ALL.len()];
    is_the_same_again(&trace, to);
    for fit in [Fit::Wrap, Fit::Scale, Fit::Error] {
        let mut fitted = trace.clone();
        if fitted.fit(DRIVE_BYTES, fit).is_ok() {
            assert!(fitted.end_bytes() <= DRIVE_BYTES);
            if let Ok(mut workload) = fitted.into_workload(Mode::Timed) {
                follow(&mut workload, DRIVE_BYTES);
            }
        }
    }
}

/// What is converted is read, with as many requests, but for those that the format has no word for.
fn is_the_same_again(trace: &Trace, to: Format) {
    let mut text = Vec::new();
    let Ok(losses) = convert(trace, to, &mut text) else {
        return;
    };
    let left_out = losses.flushes + losses.trims;
    let options = Options {
        format: Some(to),
        device: DeviceChoice::All,
        ..Options::default()
    };
    match load(&text[..], "converted", &options) {
        Ok((again, _)) => assert_eq!(again.len() as u64 + left_out, trace.len() as u64, "{to}"),
        Err(error) => assert_eq!(left_out, trace.len() as u64, "{to}: {error}"),
    }
}
