//! How many reads a second does a served drive do, when the model takes no time? For people:
//! `cargo test --release -p lodger-serve --test iops -- --ignored --nocapture`.
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Attached, Served};
use driver::Driver;
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(3);

#[test]
#[ignore = "a measurement"]
fn reads_a_second() {
    for (name, speed, written) in [("empty", 0.0, false), ("written", 0.0, true)] {
        let served = Served::new(name, speed);
        let mut driver = Driver::new(Attached::new(&served.path()));
        driver.enable();
        driver.create_queues(1);
        driver.use_shadows();
        let blocks = 64 << 10;
        for lba in (0..blocks).step_by(128).filter(|_| written) {
            let entry = driver.entry(1, 1, lba, 128);
            driver.run(1, entry).expect("a write");
        }
        for depth in [1, 32] {
            let mut rng = lodger_core::rng::Rng::new(depth as u64);
            let (mut done, start) = (0, Instant::now());
            while start.elapsed() < TIME {
                while driver.io[0].under_way.len() < depth {
                    let lba = u64::from(rng.below(blocks as u32 / 8)) * 8;
                    let entry = driver.entry(1, 2, lba, 8);
                    driver.submit(1, entry);
                }
                let ended = driver.reap(1).len();
                done += ended;
                if ended == 0 {
                    std::thread::yield_now();
                }
            }
            let rate = done as f64 / start.elapsed().as_secs_f64();
            println!("{name}, depth {depth}: {:.0} k reads/s", rate / 1e3);
            while !driver.io[0].under_way.is_empty() {
                driver.reap(1);
                std::thread::yield_now();
            }
        }
    }
}
