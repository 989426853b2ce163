//! What io_uring and threads add to a transfer: latencies of random 4 KiB reads of a file or block
//! device by both, turn by turn. `cargo run --release -p lodger-probe --example engines PATH`.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use lodger_probe::safety::Machine;
    use lodger_probe::target::file::{Engine, FileTarget};
    use lodger_probe::{Io, Target};
    use std::path::Path;
    let path = std::env::args().nth(1).ok_or("which file or device?")?;
    let open =
        |engine| FileTarget::open_under(Path::new(&path), false, &Machine::default(), engine);
    let mut ways = [open(Engine::Ring)?, open(Engine::Threads)?];
    let pages = ways[0].describe().capacity_bytes / 4096;
    let (mut state, mut samples) = (1u64, Vec::new());
    println!("queue depth, engine: 10th, 50th and 99th percentile (us), thousand reads a second");
    for queue_depth in [1, 4, 32, 128] {
        let mut latencies = [Vec::new(), Vec::new()];
        let mut busy_ns = [0, 0];
        for turn in 0..320 {
            let page = |_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                Io::read((state >> 20) % pages * 4096, 4096)
            };
            let ios: Vec<Io> = (0..64).map(page).collect();
            let way = turn % 2;
            ways[way].run(&ios, queue_depth, &mut samples)?;
            busy_ns[way] += samples.iter().map(|s| s.completed_ns()).max().unwrap_or(0);
            latencies[way].extend(samples.iter().map(|s| s.latency_ns));
        }
        for (way, name) in ["io_uring", "threads"].into_iter().enumerate() {
            latencies[way].sort_unstable();
            let at = |share: usize| latencies[way][latencies[way].len() * share / 100] as f64 / 1e3;
            let rate = latencies[way].len() as f64 / busy_ns[way] as f64 * 1e6;
            println!(
                "{queue_depth:>4} {name:>9}: {:7.2} {:7.2} {:7.2} {rate:7.0}",
                at(10),
                at(50),
                at(99)
            );
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
