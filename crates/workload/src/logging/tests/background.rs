//! Does who logs without waiting for the drive wait for room, and is it told what a crash takes?

use super::super::log::Log;
use super::*;
use std::collections::VecDeque;

/// In the long run a log grows no faster than its drive writes, whoever waits for it.
#[test]
fn an_asynchronous_log_grows_no_faster_than_its_drive_writes() {
    for database in [Database::PostgreSql, Database::RocksDb] {
        let bytes_per_write = |unwritten_bytes| {
            let settings = Settings {
                unwritten_bytes,
                transactions: 4000,
                ..settings(database, Commit::Asynchronous, 8)
            };
            let (model, _, latencies) = run(settings, captured(false, 0));
            let counted = model.statistics();
            let took_ps = counted.ended_ps - counted.began_ps;
            let longest_ps = latencies.into_iter().max().unwrap();
            let rate = (counted.log_bytes * WRITE_PS) as f64 / took_ps as f64;
            (rate, counted.exposed_bytes_max, longest_ps)
        };
        // Room for four records: no more of them in each write, and who logs waits for a write or two.
        let (rate, most, longest_ps) = bytes_per_write(400);
        assert!(rate <= 400.0, "{database:?} {rate}");
        // Alone a group has room, of all clients at most.
        assert!(most <= 800, "{database:?} {most}");
        assert!(longest_ps >= WRITE_PS / 2, "{database:?} {longest_ps}");
        // With room for all of it the cores are what holds it up.
        let (rate, most, longest_ps) = bytes_per_write(16 << 20);
        assert!(rate > 600.0, "{database:?} {rate}");
        assert!(most > 100_000, "{database:?} {most}");
        assert!(longest_ps < 2 * WRITE_PS, "{database:?} {longest_ps}");
    }
}

/// A batch of several commands: each gives its room in memory back as it is written, and is safe from a crash then only where
/// nothing written is lost.
#[test]
fn each_command_of_a_batch_gives_room_back_and_the_flush_after_it_makes_it_safe() {
    const MIB: u64 = 1 << 20;
    for lasts in [true, false] {
        let settings = settings(Database::RocksDb, Commit::Asynchronous, 1);
        let mut log = Log::new(&settings);
        log.append(2 * MIB + 100);
        let mut steps = VecDeque::new();
        let bytes = log.write(1, u64::MAX, &mut steps);
        assert_eq!((bytes, steps.len()), (2 * MIB + 4096, 3));
        for (command, left) in [(MIB, MIB + 100), (MIB, 100), (4096, 0)] {
            log.land(command, lasts);
            assert_eq!(log.in_memory(), left);
            let exposed = if lasts { left } else { 2 * MIB + 100 };
            assert_eq!(log.exposed(), exposed, "{lasts}");
        }
        log.settle();
        assert_eq!((log.in_memory(), log.exposed()), (0, 0));
    }
}
