//! Does the page of metrics say what the drive did, in the form that it claims, and do bad visitors harm nobody?
#![cfg(target_os = "linux")]

mod nbd_client;

use nbd_client::{Client, FLUSH, How, Served, ask_page};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

fn page(served: &Served) -> String {
    let stream = UnixStream::connect(served.folder.join("metrics")).expect("a listener");
    let answer = ask_page(stream, GET);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    body.to_owned()
}

/// Values by series. Every line has the form that Prometheus wants.
fn values(page: &str) -> BTreeMap<String, f64> {
    let mut typed = BTreeMap::new();
    let mut values = BTreeMap::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert!(["counter", "gauge", "histogram"].contains(&kind));
            assert!(
                typed.insert(name.to_owned(), kind).is_none(),
                "{name} twice"
            );
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with("lodger_") && rest.ends_with('.'), "{rest}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let parts = ["_bucket", "_sum", "_count"];
            let whole = parts.iter().find_map(|part| name.strip_suffix(part));
            let is_typed = |name: &str| typed.contains_key(name);
            assert!(is_typed(name) || whole.is_some_and(is_typed), "{line}");
            let value = value.parse().expect("a number");
            assert!(values.insert(series.to_owned(), value).is_none(), "{line}");
        }
    }
    values
}

#[test]
fn the_page_says_what_the_drive_did() {
    let served = Served::with_metrics("page", How::default());
    let before = values(&page(&served));
    assert_eq!(before["lodger_commands_total"], 0.0);
    assert_eq!(
        before["lodger_host_memory_granted_bytes"],
        f64::from(256 << 10)
    );
    assert!(!before.contains_key("lodger_write_amplification"));
    let mut client = Client::new(&served);
    for page in 0..100 {
        assert_eq!(client.write(0, page * 4096, &[1; 4096]), Ok(()));
    }
    assert_eq!(client.ask(FLUSH, 0, 0, 0), Ok(()));
    for page in 0..50 {
        assert_eq!(client.read(page * 8192, 4096), Ok(vec![1; 4096]));
    }
    assert_eq!(client.read(1 << 40, 4096), Err(22));
    let after = values(&page(&served));
    for (name, value) in [
        ("clients_total", 1),
        ("commands_total", 151),
        ("reads_total", 50),
        ("writes_total", 100),
        ("read_bytes_total", 50 * 4096),
        ("written_bytes_total", 100 * 4096),
        ("queue_depth", 0),
        ("lateness_seconds_count", 151),
        ("lateness_seconds_bucket{le=\"+Inf\"}", 151),
    ] {
        assert_eq!(after[&format!("lodger_{name}")], f64::from(value), "{name}");
    }
    assert!(after["lodger_flash_programmed_bytes_total{cause=\"host\"}"] >= 409_600.0);
    assert!(after["lodger_write_amplification"] >= 1.0);
    assert!(after["lodger_flash_reads_total{cause=\"host\"}"] > 0.0);
    let hits = |values: &BTreeMap<String, f64>| {
        let hits = values
            .iter()
            .filter(|(name, _)| name.starts_with("lodger_map_hits_total"));
        hits.map(|(_, hits)| hits).sum::<f64>() + values["lodger_map_misses_total"]
    };
    assert_eq!(hits(&after), after["lodger_map_lookups_total"]);
    assert!(after["lodger_drive_seconds"] > before["lodger_drive_seconds"]);
    let buckets: Vec<f64> = page(&served)
        .lines()
        .filter(|line| line.starts_with("lodger_lateness_seconds_bucket"))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(buckets.is_sorted(), "{buckets:?}");
}

#[test]
fn bad_visitors_are_answered_or_sent_away() {
    let served = Served::with_metrics("visitors", How::default());
    let path = served.folder.join("metrics");
    let mode = std::fs::metadata(&path)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let visit = || UnixStream::connect(&path).expect("a listener");
    let said = |request: &str| ask_page(visit(), request);
    assert!(said("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(said("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(said("GET /metrics?x=1 HTTP/1.0\r\nA: b\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(said("\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(said(&"x".repeat(8192)).starts_with("HTTP/1.1 431 "));
    // Who says nothing, or half of something, keeps neither the drive nor others from anything for long.
    let mut silent: Vec<UnixStream> = (0..12).map(|_| visit()).collect();
    for visitor in &mut silent {
        let _ = visitor.write_all(b"GET /metrics HT");
    }
    let mut client = Client::new(&served);
    assert_eq!(client.write(0, 0, &[1; 4096]), Ok(()));
    assert_eq!(client.read(0, 4096), Ok(vec![1; 4096]));
    drop(silent);
    assert!(page(&served).contains("lodger_commands_total 2\n"));
    let path = served.folder.join("metrics");
    served.end();
    assert!(!path.exists(), "gone with its server");
}
