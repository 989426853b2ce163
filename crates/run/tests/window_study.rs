//! The experiments with the byte window: what they find where the answer is known, and what they say
//! of wrong wishes.

use lodger_run::window_study::{self, Figures};
use lodger_run::{Drive, HmbChoice, RunConfig};

fn config(drive: &str, sets: &[(&str, &str)]) -> RunConfig {
    RunConfig {
        hmb: HmbChoice::Off,
        ..RunConfig::new(Drive::open(drive, sets).expect("a drive of the collection"))
    }
}

fn figure(figures: &Figures, name: &str) -> f64 {
    let found = figures.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no figure {name}")).1
}

#[test]
fn latencies_are_those_of_the_parts() {
    let figures = window_study::latency(&config("2b-ssd", &[]), 64).unwrap();
    // Eight stores of 1 ns into an empty buffer; eight loads, a round trip each.
    assert_eq!(figure(&figures, "store"), 8.0);
    let spec = config("2b-ssd", &[]).drive.parsed.spec;
    let wire_ps = |bytes| lodger_core::transport::wire_ps(&spec.link, bytes);
    let pm_ps = spec.tiers.pm.as_ref().unwrap().access_ps;
    let load_ps = 2 * spec.link.one_way_ps + wire_ps(0) + wire_ps(8) + pm_ps + 1000;
    assert_eq!(figure(&figures, "load"), 8.0 * load_ps as f64 / 1e3);
    let sync = figure(&figures, "persistent") - figure(&figures, "store");
    let cpu = &spec.host.cpu;
    // One line flushed; its packet left when it was full. Then the read that confirms it.
    let sync_ps = cpu.call_ps + cpu.flush_line_ps + cpu.fence_ps;
    let read_ps = 2 * spec.link.one_way_ps + 2 * wire_ps(0) + pm_ps;
    let posted_ps = wire_ps(64);
    let least = (sync_ps + read_ps) as f64 / 1e3;
    assert!(
        (least..=least + posted_ps as f64 / 1e3).contains(&sync),
        "{sync} {least}"
    );
}

#[test]
fn stores_run_at_the_rate_of_the_link_and_the_automated_path_beats_the_firmwares() {
    let config = config("2b-ssd", &[]);
    let figures = window_study::bandwidth(&config, 1 << 20).unwrap();
    let link = &config.drive.parsed.spec.link;
    let line_ps = lodger_core::transport::wire_ps(link, 64) as f64;
    let peak = 64e6 / line_ps;
    let store = figure(&figures, "store");
    assert!((0.97 * peak..=peak).contains(&store), "{store} {peak}");
    for (slow, fast) in [
        ("pin", "peak_read"),
        ("flush", "peak_write"),
        ("load", "read_dma"),
    ] {
        let (slow, fast) = (figure(&figures, slow), figure(&figures, fast));
        assert!(slow < fast, "{slow} {fast}");
    }
    // Without a window only block commands are measured.
    let names: Vec<_> = window_study::bandwidth(&self::config("sz985", &[]), 4096).unwrap();
    assert_eq!(names.len(), 4);
}

#[test]
fn cuts_lose_nothing_that_was_synced_and_say_what_else_is_left() {
    let figures = window_study::cuts(&config("2b-ssd", &[]), 1000, 40).unwrap();
    for nothing in ["unrestored", "synced_lost_bytes", "torn_lines"] {
        assert_eq!(figure(&figures, nothing), 0.0, "{nothing}");
    }
    let kept = figure(&figures, "unsynced_kept_share");
    assert!(kept > 0.0 && kept < 1.0, "{kept}");
}

#[test]
fn cuts_on_memory_of_the_host_lose_nothing_where_it_keeps_all_and_all_where_it_keeps_nothing() {
    let on_cxl = |persistent: &'static str| {
        config(
            "2b-ssd",
            &[
                ("role.window.tier", "cxl"),
                ("tier.cxl.size", "64MiB"),
                ("tier.cxl.persistent", persistent),
            ],
        )
    };
    let (kept, volatile) = (on_cxl("true"), on_cxl("false"));
    let figures = window_study::cuts(&kept, 1000, 40).unwrap();
    for nothing in ["unrestored", "synced_lost_bytes", "torn_lines"] {
        assert_eq!(figure(&figures, nothing), 0.0, "{nothing}");
    }
    let share = figure(&figures, "unsynced_kept_share");
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert_eq!(window_study::shortfall(&kept.drive.parsed.spec), None);
    let figures = window_study::cuts(&volatile, 1000, 40).unwrap();
    assert_eq!(figure(&figures, "unrestored"), 40.0);
    assert!(figure(&figures, "synced_lost_bytes") >= 40.0 * 8192.0);
    let warning = window_study::shortfall(&volatile.drive.parsed.spec).expect("a warning");
    assert!(warning.contains("tier.cxl.persistent"), "{warning}");
    // Nothing feeds a dump that there is not.
    assert!(window_study::energy(&kept).is_err());
}

#[test]
fn the_energy_says_whether_the_window_comes_back() {
    for (volts, whole) in [("12", true), ("5.1", false)] {
        let config = config("2b-ssd", &[("power.rail_v", volts)]);
        let figures = window_study::energy(&config).unwrap();
        assert_eq!(figure(&figures, "unnoticed"), 0.0);
        assert_eq!(
            figure(&figures, "entries_back") == 8.0,
            whole,
            "{figures:?}"
        );
        assert_eq!(figure(&figures, "warned") == 0.0, whole);
        assert_eq!(
            window_study::shortfall(&config.drive.parsed.spec).is_none(),
            whole
        );
        let lasts = figure(&figures, "hold_up_ms") >= figure(&figures, "needed_ms");
        assert_eq!(lasts, whole);
    }
}

#[test]
fn wrong_wishes_are_refused() {
    let (with, without) = (config("2b-ssd", &[]), config("sz985", &[]));
    assert!(window_study::latency(&with, 0).is_err());
    assert!(window_study::latency(&with, 16 << 20).is_err());
    assert!(window_study::bandwidth(&with, 1000).is_err());
    assert!(window_study::cuts(&with, 8 << 20, 1).is_err());
    assert!(window_study::cuts(&without, 64, 1).is_err());
    assert!(window_study::energy(&without).is_err());
}
