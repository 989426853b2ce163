//! Is all of a log read back, once and in order?

use super::*;

/// Every byte of the log is read once, in order; and what takes time is what the drive takes.
#[test]
fn a_log_is_read_back_whole_and_takes_the_sum_of_its_reads() {
    const PATHS: [RecoveryPath; 3] = [
        RecoveryPath::ReadDma,
        RecoveryPath::Loads,
        RecoveryPath::Blocks,
    ];
    for (commit, path) in MODES
        .into_iter()
        .flat_map(|mode| PATHS.map(|path| (mode, path)))
    {
        let plain = settings(Database::RocksDb, commit, 3);
        let settings = Settings {
            recovery: Some(path),
            ..plain.clone()
        };
        let (model, drive, _) = run(settings.clone(), captured(false, 0));
        let counted = model.statistics();
        assert_eq!(counted.failure, None);
        let recovered = counted.recovered.expect("it was read back");
        assert_eq!(recovered.bytes, drive.read_back);
        let is_read = |happening: &&Happening| {
            matches!(happening, Happening::Block(Request { op: Op::Read, .. }))
        };
        let reads = drive.happened.iter().filter(is_read).count() as u64;
        let in_window = match commit {
            Commit::ByteAddressed => counted.log_bytes % settings.segment_bytes,
            _ => 0,
        };
        assert_eq!(recovered.window_bytes, in_window);
        let calls = u64::from(in_window > 0);
        assert_eq!(
            recovered.took_ps,
            reads * WRITE_PS + calls * SEGMENT_PS,
            "{commit:?} {path:?}"
        );
        let bytes = match (commit, path) {
            (Commit::ByteAddressed, RecoveryPath::ReadDma | RecoveryPath::Loads) => {
                counted.log_bytes
            }
            _ => counted.log_bytes.next_multiple_of(4096),
        };
        assert_eq!(recovered.bytes, bytes, "{commit:?} {path:?}");
        // Nothing of the run before is another.
        let (without, ..) = run(plain, captured(false, 0));
        let mut rest = counted.clone();
        rest.recovered = None;
        assert_eq!(&rest, without.statistics());
    }
}

/// A log that has been round holds its last bytes, less what stands where the window's segments are pinned.
#[test]
fn a_log_that_was_used_again_is_read_from_its_oldest_byte() {
    for (commit, holds) in [
        (Commit::Block, 64 << 10),
        (Commit::ByteAddressed, (64 << 10) - 2 * 8192),
    ] {
        let settings = Settings {
            log_bytes: 64 << 10,
            transactions: 4000,
            recovery: Some(RecoveryPath::ReadDma),
            ..settings(Database::RocksDb, commit, 1)
        };
        let mut model = Model::new(settings, captured(false, 0));
        let (mut now_ps, mut reads, mut in_window) = (0, 0, 0);
        loop {
            let (submitted_ps, completed_ps) = (now_ps, now_ps + 5);
            match model.next(now_ps) {
                Next::Submit(request) => {
                    if request.op == Op::Read {
                        reads += request.length_bytes;
                    }
                    let Request { tag, op, .. } = request;
                    let status = Status::Success;
                    now_ps = completed_ps;
                    model.complete(&Completion {
                        tag,
                        op,
                        status,
                        submitted_ps,
                        completed_ps,
                    });
                }
                Next::Call { call, cpu } => {
                    if let WindowCall::ReadDma { length_bytes, .. } = call {
                        in_window += length_bytes;
                    }
                    let (tag, result) = (0, Ok(WindowReply::Done));
                    now_ps = completed_ps;
                    model.called(&WindowCompletion {
                        tag,
                        cpu,
                        call,
                        result,
                        submitted_ps,
                        completed_ps,
                    });
                }
                Next::At(at_ps) => now_ps = at_ps,
                Next::Blocked | Next::Reap(_) => panic!("nothing is under way"),
                Next::Done => break,
            }
        }
        let counted = model.statistics();
        assert_eq!(counted.failure, None);
        assert!(counted.log_bytes > 128 << 10, "it has been round twice");
        assert_eq!(reads, holds, "{commit:?}");
        assert_eq!(in_window > 0, commit == Commit::ByteAddressed);
    }
}
