//! Which part of a drive does a load wait for, where the mean of all of its kind says that it idles?

mod jobs;

use lodger_run::{Busy, Drive, RunConfig, report, run};

/// How busy the dies were, and what the report says.
fn dies(job: &str) -> (Busy, String) {
    let drive = Drive::open("970-pro", &[]).unwrap();
    let config = RunConfig::new(drive);
    let text = format!("[r]\nrw=randread\nbs=4k\niodepth=8\nio_size=8m\n{job}");
    let workload = jobs::parse(&text, &config);
    let result = run(&config, workload, &mut ()).unwrap();
    let dies = result.utilisation.iter().find(|busy| busy.kind == "die");
    let dies = *dies.expect("dies");
    let report = report::Report {
        config: &config,
        result: &result,
    };
    (dies, report::text(report))
}

#[test]
fn reads_of_one_page_name_the_die_that_they_wait_for() {
    let mut named = Vec::new();
    for offset in ["0", "64k", "300k"] {
        let (dies, text) = dies(&format!("offset={offset}\nsize=4k\n"));
        // All the others idle.
        let alone = dies.mean * dies.number as f64;
        assert!((dies.most / alone - 1.0).abs() < 1e-9, "{dies:?}");
        assert!(dies.most > 0.25, "{dies:?}");
        let says = format!("busiest   : die {}=", dies.busiest);
        assert!(text.contains(&says), "{text}");
        named.push(dies.busiest);
    }
    named.dedup();
    assert!(named.len() > 1, "{named:?}");
}

#[test]
fn reads_of_all_dies_alike_name_none() {
    let (dies, text) = dies("size=4g\n");
    assert!(
        dies.most > dies.mean && dies.most < 2.0 * dies.mean,
        "{dies:?}"
    );
    assert!(!text.contains("busiest"), "{text}");
}
