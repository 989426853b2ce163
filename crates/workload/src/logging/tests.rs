//! Does the model keep a database's promises? A drive of fixed times stands below it, and a naive
//! account of what is durable beside it.

mod background;
mod recovery;
mod wrong;

use super::{Captured, Commit, Database, Model, RecoveryPath, Settings};
use crate::Next;
use lodger_core::time::{NS, S, US};
use lodger_core::{
    Completion, Op, Request, Status, WindowCall, WindowCompletion, WindowError, WindowReply,
};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const RECORD_BYTES: u64 = 100;
const WRITE_PS: u64 = 10 * US;
const FLUSH_PS: u64 = 3 * US;
const STORE_PS: u64 = 100 * NS;
const SYNC_PS: u64 = 700 * NS;
const SEGMENT_PS: u64 = 50 * US;

/// Half the transactions write `RECORD_BYTES`; each takes 4 us.
fn captured(journalled: bool, server_ns: u64) -> Captured {
    let journalled = u8::from(journalled);
    let text = format!(
        "[log]\nwrite_call_ns = 1000\nsync_call_ns = 2000\ngroup_bytes = 0\njournalled = {journalled}\n\
         journal_bytes = [[8192, 1]]\njournal_commit_bytes = [[4096, 1]]\n\
         [[operation]]\nname = \"read\"\nshare = 50\ncpu_ns = 4000\nserver_cpu_ns = {server_ns}\n\
         [[operation]]\nname = \"write\"\nshare = 50\ncpu_ns = 4000\nserver_cpu_ns = {server_ns}\n\
         log_bytes = [[{RECORD_BYTES}, 1]]\n"
    );
    Captured::parse(&text, "captured.toml").expect("a good file")
}

fn settings(database: Database, commit: Commit, clients: u32) -> Settings {
    Settings {
        database,
        commit,
        clients,
        cores: 8,
        client_ps: 0,
        switch_ps: 0,
        locks: 0,
        transactions: 400,
        log_offset_bytes: 64 << 20,
        log_bytes: 16 << 20,
        unwritten_bytes: 16 << 20,
        batch_bytes: 16 << 20,
        segment_bytes: 8192,
        journal_offset_bytes: 0,
        journal_bytes: 64 << 20,
        volatile_cache: false,
        recovery: None,
        seed: 7,
    }
}

/// What has happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Happening {
    Block(Request),
    Call(WindowCall),
}

/// A drive of fixed times that keeps account of the log.
#[derive(Default)]
struct Drive {
    due: BinaryHeap<Reverse<(u64, u64)>>,
    under_way: Vec<(u64, u64, Happening)>,
    numbered: u64,
    now_ps: u64,
    happened: Vec<Happening>,
    /// Bytes of the log that survive a power failure: what was written and, where that may be lost, flushed; or stored and
    /// synced.
    durable: u64,
    /// Bytes of the log that were written.
    written: u64,
    stored: u64,
    logged_blocks: u64,
    journal_blocks: u64,
    /// Bytes of the log that were read, from its beginning.
    read_back: u64,
    /// Segment of each entry of the window that can be stored to.
    pinned: [Option<u64>; 2],
}

impl Drive {
    fn begin(&mut self, happening: Happening) {
        let took_ps = match &happening {
            Happening::Block(request) if request.op == Op::Flush => FLUSH_PS,
            Happening::Block(_) => WRITE_PS,
            Happening::Call(WindowCall::Store { .. }) => STORE_PS,
            Happening::Call(WindowCall::Sync { .. }) => SYNC_PS,
            Happening::Call(_) => SEGMENT_PS,
        };
        self.numbered += 1;
        let at_ps = self.now_ps + took_ps;
        self.due.push(Reverse((at_ps, self.numbered)));
        self.under_way.push((self.numbered, self.now_ps, happening));
    }

    /// The next thing is done.
    fn end(&mut self, model: &mut Model, number: u64) {
        let place = self.under_way.iter().position(|(n, ..)| *n == number);
        let (_, submitted_ps, happening) = self.under_way.remove(place.expect("it is under way"));
        self.happened.push(happening.clone());
        match happening {
            Happening::Block(request) => {
                self.account_block(&request, model.settings());
                model.complete(&Completion {
                    tag: request.tag,
                    op: request.op,
                    status: Status::Success,
                    submitted_ps,
                    completed_ps: self.now_ps,
                });
            }
            Happening::Call(call) => {
                self.account_call(call, model.settings());
                model.called(&WindowCompletion {
                    tag: 0,
                    cpu: 0,
                    call,
                    result: Ok(WindowReply::Done),
                    submitted_ps,
                    completed_ps: self.now_ps,
                });
            }
        }
    }

    fn account_block(&mut self, request: &Request, settings: &Settings) {
        if request.op == Op::Flush {
            self.durable = self.durable.max(self.written);
            return;
        }
        if request.op == Op::Read {
            self.account_read(request, settings);
            return;
        }
        if request.offset_bytes < settings.log_offset_bytes {
            self.journal_blocks += request.length_bytes;
            return;
        }
        self.logged_blocks += request.length_bytes;
        let block = settings.database.block_bytes();
        assert!(
            request.offset_bytes.is_multiple_of(block)
                && request.length_bytes.is_multiple_of(block)
        );
        let place = request.offset_bytes - settings.log_offset_bytes;
        // The log is used over and over.
        let turn = self.written / settings.log_bytes * settings.log_bytes;
        let at = match place > self.written - turn {
            true => turn - settings.log_bytes + place,
            false => turn + place,
        };
        assert!(at <= self.written, "the log has no holes");
        assert!(
            at + block >= self.written,
            "what is whole is not written again"
        );
        self.written = at + request.length_bytes;
        let kept = settings.log_bytes + block;
        assert!(
            self.written <= self.durable + kept,
            "the log's last turn is durable before its next"
        );
        if !settings.volatile_cache {
            self.durable = self.written;
        }
    }

    /// Blocks are read where nothing is pinned, in the order in which they were logged.
    fn account_read(&mut self, request: &Request, settings: &Settings) {
        let at = request.offset_bytes - settings.log_offset_bytes;
        let end = at + request.length_bytes;
        for segment in self.pinned.iter().flatten() {
            let start = segment * settings.segment_bytes;
            let apart = end <= start || at >= start + settings.segment_bytes;
            assert!(apart, "the drive refuses what is pinned");
        }
        assert_eq!(
            at,
            self.read_back % settings.log_bytes,
            "nothing is left out"
        );
        self.read_back += request.length_bytes;
    }

    fn account_call(&mut self, call: WindowCall, settings: &Settings) {
        let segment_bytes = settings.segment_bytes;
        match call {
            WindowCall::Pin {
                entry,
                drive_offset_bytes,
                length_bytes,
                ..
            } => {
                assert_eq!(length_bytes, segment_bytes);
                let segment = (drive_offset_bytes - settings.log_offset_bytes) / segment_bytes;
                let before = self.pinned[entry.0 as usize].replace(segment);
                assert_eq!(before, None, "an entry is flushed before it is pinned anew");
            }
            WindowCall::Store {
                window_offset_bytes,
                length_bytes,
            } => {
                let half = (window_offset_bytes / segment_bytes) as usize;
                let segment = self.pinned[half].expect("stores go to what is pinned");
                let at = segment * segment_bytes + window_offset_bytes % segment_bytes;
                assert_eq!(at, self.stored, "the log has no holes");
                assert!(window_offset_bytes % segment_bytes + length_bytes <= segment_bytes);
                self.stored += length_bytes;
            }
            WindowCall::Sync { .. } => self.durable = self.stored,
            WindowCall::Flush { entry } => {
                let segment = self.pinned[entry.0 as usize].take().expect("it was pinned");
                assert!(
                    (segment + 1) * segment_bytes <= self.durable
                        || settings.recovery == Some(RecoveryPath::Blocks),
                    "only full segments"
                );
            }
            WindowCall::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            } => {
                let segment = self.pinned[entry.0 as usize].expect("it is pinned");
                assert_eq!(segment * segment_bytes + offset_bytes, self.read_back);
                self.read_back += length_bytes;
            }
            WindowCall::Load {
                window_offset_bytes,
                length_bytes,
            } => {
                let half = (window_offset_bytes / segment_bytes) as usize;
                let segment = self.pinned[half].expect("it is pinned");
                assert_eq!(
                    segment * segment_bytes + window_offset_bytes % segment_bytes,
                    self.read_back
                );
                self.read_back += length_bytes;
            }
            other => panic!("the model does not ask for {other:?}"),
        }
    }
}

/// Runs a model to its end; after every step, nothing acknowledged may be missing.
fn run(settings: Settings, captured: Captured) -> (Model, Drive, Vec<u64>) {
    let mut model = Model::new(settings, captured);
    let mut drive = Drive::default();
    let mut latencies = Vec::new();
    loop {
        let next = model.next(drive.now_ps);
        model.take_latencies(&mut latencies);
        let promised = model.statistics().commits * RECORD_BYTES;
        // Those who do not wait for the drive wait for room in memory. Alone a group is let in whatever it logs.
        let ahead = match model.settings().commit {
            Commit::Asynchronous => {
                let settings = model.settings();
                let group = u64::from(settings.clients) * RECORD_BYTES;
                match settings.volatile_cache {
                    true => settings.log_bytes.max(group),
                    false => settings.unwritten_bytes.max(group),
                }
            }
            Commit::Block | Commit::ByteAddressed => 0,
        };
        assert!(
            promised <= drive.durable + ahead,
            "acknowledged before it was durable"
        );
        let until_ps = match next {
            Next::Submit(request) => {
                drive.begin(Happening::Block(request));
                continue;
            }
            Next::Call { call, .. } => {
                drive.begin(Happening::Call(call));
                continue;
            }
            Next::At(at_ps) => at_ps,
            Next::Blocked => u64::MAX,
            Next::Reap(_) => panic!("a model takes what arrives"),
            Next::Done => break,
        };
        match drive.due.peek() {
            Some(&Reverse((at_ps, number))) if at_ps <= until_ps => {
                drive.due.pop();
                drive.now_ps = at_ps;
                drive.end(&mut model, number);
            }
            _ => {
                assert!(until_ps < u64::MAX, "the model waits for nothing");
                drive.now_ps = until_ps;
            }
        }
    }
    assert!(drive.under_way.is_empty(), "nothing is left behind");
    (model, drive, latencies)
}

#[test]
fn ways_of_committing_are_compared_by_the_same_transactions() {
    for database in DATABASES {
        let commits = MODES.map(|mode| {
            let settings = Settings {
                locks: 3,
                ..settings(database, mode, 4)
            };
            let server_ns = if database == Database::Redis { 1000 } else { 0 };
            let (model, ..) = run(settings, captured(true, server_ns));
            model.statistics().commits
        });
        assert_eq!(commits, [commits[0]; 3], "{database:?}");
    }
}

const DATABASES: [Database; 3] = [Database::PostgreSql, Database::RocksDb, Database::Redis];
const MODES: [Commit; 3] = [Commit::Block, Commit::ByteAddressed, Commit::Asynchronous];

proptest! {
    #![proptest_config(lodger_testing::config(60))]

    #[test]
    fn every_transaction_ends_once_and_what_is_acknowledged_is_durable(
        database in 0usize..3, mode in 0usize..3, clients in 1u32..20, cores in 1u32..4,
        journalled: bool, volatile_cache: bool, locks in 0u32..4, switch_ps in 0u64..9_000_000,
        room in 0usize..4, batch in 0usize..2, log in 0usize..2, seed: u64,
    ) {
        let database = DATABASES[database];
        let server_ns = if database == Database::Redis { 1000 } else { 0 };
        let settings = Settings {
            cores, volatile_cache, seed, locks, switch_ps,
            unwritten_bytes: [1, 250, 3000, 16 << 20][room],
            batch_bytes: [5000, 16 << 20][batch],
            // The account of segments in the window knows of no second turn.
            log_bytes: match MODES[mode] {
                Commit::ByteAddressed => 16 << 20,
                Commit::Block | Commit::Asynchronous => [16 << 10, 16 << 20][log],
            },
            client_ps: 2 * switch_ps,
            ..settings(database, MODES[mode], clients)
        };
        let (model, drive, latencies) = run(settings.clone(), captured(journalled, server_ns));
        let counted = model.statistics();
        prop_assert_eq!(counted.failure.as_deref(), None);
        prop_assert_eq!(counted.transactions, settings.transactions);
        prop_assert_eq!(counted.log_bytes, counted.commits * RECORD_BYTES);
        prop_assert_eq!(latencies.len() as u64, counted.commits);
        if settings.commit == Commit::Asynchronous {
            let group = u64::from(clients) * RECORD_BYTES;
            let ahead = match volatile_cache {
                true => settings.log_bytes,
                // Written is durable.
                false => settings.unwritten_bytes,
            };
            prop_assert!(counted.exposed_bytes_max <= ahead.max(group), "{} {ahead}", counted.exposed_bytes_max);
        }
        // In the end all of it is durable: by commit, or by the background writer.
        prop_assert!(drive.durable >= counted.log_bytes);
        prop_assert_eq!(counted.journal_bytes, drive.journal_blocks);
        if settings.commit == Commit::ByteAddressed {
            prop_assert_eq!(drive.stored, counted.log_bytes, "no more is stored than was logged");
            prop_assert_eq!(drive.logged_blocks, 0);
        } else {
            prop_assert_eq!(counted.written_bytes, drive.logged_blocks);
        }
        // The same seed, the same run.
        let (again, other, _) = run(settings, captured(journalled, server_ns));
        prop_assert_eq!(again.statistics(), model.statistics());
        prop_assert_eq!(other.happened, drive.happened);
    }
}

/// Time that one client takes for all its transactions, from the parts.
fn of_parts(transactions: u64, commits: u64, commit_ps: u64) -> u64 {
    transactions * 4 * US + commits * commit_ps
}

#[test]
fn one_client_takes_the_sum_of_the_parts() {
    let calls_ps = 3 * US;
    for (commit, journalled, commit_ps) in [
        (Commit::Block, false, calls_ps + WRITE_PS),
        (Commit::Block, true, calls_ps + 3 * WRITE_PS),
        (Commit::ByteAddressed, false, STORE_PS + SYNC_PS),
        (Commit::Asynchronous, false, US),
    ] {
        // Segments so large that none is full within the run.
        let settings = Settings {
            segment_bytes: 1 << 20,
            ..settings(Database::RocksDb, commit, 1)
        };
        let (model, ..) = run(settings, captured(journalled, 0));
        let counted = model.statistics();
        let took_ps = counted.ended_ps - counted.began_ps;
        assert_eq!(
            took_ps,
            of_parts(400, counted.commits, commit_ps),
            "{commit:?}"
        );
        let per_s = 400.0 * S as f64 / took_ps as f64;
        assert!((counted.transactions_per_s() - per_s).abs() < 1e-6);
    }
    // PostgreSQL's asynchronous commit does not even hand its records over.
    let (model, ..) = run(
        settings(Database::PostgreSql, Commit::Asynchronous, 1),
        captured(false, 0),
    );
    let counted = model.statistics();
    assert_eq!(counted.ended_ps, of_parts(400, counted.commits, 0));
}

#[test]
fn the_client_s_own_time_and_context_switches_are_parts_of_the_sum() {
    let (own_ps, switch_ps) = (6 * US, 2 * US);
    for (commit, sleeps) in [
        (Commit::Block, true),
        // It stores the bytes itself.
        (Commit::ByteAddressed, false),
    ] {
        let took_ps = |client_ps, switch_ps| {
            let settings = Settings {
                segment_bytes: 1 << 20,
                client_ps,
                switch_ps,
                ..settings(Database::RocksDb, commit, 1)
            };
            let (model, ..) = run(settings, captured(false, 0));
            let counted = model.statistics();
            (counted.ended_ps - counted.began_ps, counted.commits)
        };
        let (plain_ps, commits) = took_ps(0, 0);
        let (ps, _) = took_ps(own_ps, switch_ps);
        let switches_ps = ps - plain_ps - 400 * own_ps;
        // None follows the last transaction.
        let after_each = [commits * switch_ps, (commits - 1) * switch_ps];
        match sleeps {
            true => assert!(after_each.contains(&switches_ps), "{switches_ps}"),
            false => assert_eq!(switches_ps, 0),
        }
    }
}

/// Of two clients that share a lock one works while the other's commit is on its way; without locks both commits share a
/// write now and then.
#[test]
fn who_shares_a_lock_does_not_share_a_write() {
    let groups = |locks| {
        let settings = Settings {
            locks,
            ..settings(Database::PostgreSql, Commit::Block, 8)
        };
        let (model, _, latencies) = run(settings, captured(false, 0));
        let counted = model.statistics();
        (counted.groups, counted.commits, latencies)
    };
    let (groups_of_one, commits, latencies) = groups(1);
    assert_eq!(groups_of_one, commits, "one after the other");
    let commit_ps = 3 * US + WRITE_PS;
    assert!(
        latencies.iter().all(|&ps| ps == commit_ps),
        "nobody leads before"
    );
    let (shared, commits, _) = groups(0);
    assert!(2 * shared < commits, "{shared} groups of {commits}");
}

#[test]
fn a_volatile_cache_is_flushed_before_and_with_the_journal_s_commit_record() {
    let settings = Settings {
        volatile_cache: true,
        transactions: 40,
        ..settings(Database::RocksDb, Commit::Block, 1)
    };
    let (model, drive, _) = run(settings, captured(true, 0));
    let commits = model.statistics().commits as usize;
    let kinds: Vec<(Op, bool, u64)> = drive
        .happened
        .iter()
        .map(|happening| match happening {
            Happening::Block(request) => (request.op, request.fua, request.length_bytes),
            Happening::Call(call) => panic!("{call:?}"),
        })
        .collect();
    let each = [
        (Op::Write, false, 4096),
        (Op::Write, false, 8192),
        (Op::Flush, false, 0),
        (Op::Write, true, 4096),
    ];
    // A record of 100 bytes may reach into the next block.
    let shapes = kinds
        .chunks(4)
        .map(|chunk| (chunk[0].0, chunk[1], chunk[2], chunk[3]));
    assert_eq!(shapes.len(), commits);
    for shape in shapes {
        assert_eq!(shape, (Op::Write, each[1], each[2], each[3]));
    }
}

#[test]
fn many_clients_share_writes_and_rewrite_less() {
    let amplification = |clients| {
        let settings = settings(Database::PostgreSql, Commit::Block, clients);
        let (model, ..) = run(settings, captured(false, 0));
        let counted = model.statistics();
        (
            counted.commits as f64 / counted.groups as f64,
            counted.write_amplification().unwrap(),
        )
    };
    let (alone, rewritten) = amplification(1);
    assert_eq!(alone, 1.0);
    assert!(
        rewritten > 80.0,
        "each commit of 100 bytes writes a page of 8 KiB: {rewritten}"
    );
    let (shared, less) = amplification(16);
    assert!(shared > 2.0 && less < rewritten / 2.0, "{shared} {less}");
}

#[test]
fn redis_answers_nobody_before_its_sync() {
    let (model, _, latencies) = run(
        settings(Database::Redis, Commit::Block, 8),
        captured(false, 1000),
    );
    let counted = model.statistics();
    assert!(
        latencies.iter().all(|&ps| ps == 3 * US + WRITE_PS),
        "one wait, whoever waits"
    );
    assert!(counted.commits > counted.groups);
}

#[test]
fn a_refusal_ends_the_run() {
    let mut model = Model::new(
        settings(Database::Redis, Commit::ByteAddressed, 1),
        captured(false, 1000),
    );
    let Next::Call { call, cpu } = model.next(0) else {
        panic!("it pins first");
    };
    model.called(&WindowCompletion {
        tag: 0,
        cpu,
        call,
        result: Err(WindowError::NoWindow),
        submitted_ps: 0,
        completed_ps: 5,
    });
    assert_eq!(model.next(5), Next::Done);
    let failure = model.statistics().failure.clone().expect("it failed");
    assert!(
        failure.contains("the drive has no byte window"),
        "{failure}"
    );
}
