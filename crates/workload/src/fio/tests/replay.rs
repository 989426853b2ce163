//! What does a job do that replays a log? The instants are those of fio 3.33 with `ioengine=psync` on a block device,
//! less the millisecond before the first request.

use super::*;

const LOG: &str = "fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n1000 /dev/x read 0 4096\n\
                   50000 /dev/x write 8192 4096\n100000 /dev/x read 65536 65536\n\
                   100000 /dev/x read 131072 65536\n100500 /dev/x sync\n200000 /dev/x close\n";

fn replayed(options: &str) -> Result<Vec<Done>, WorkloadError> {
    let text = format!("[a]\nread_iolog=v3.log\n{options}\n");
    let include = |name: &str| match name {
        "v3.log" => Ok(LOG.to_owned()),
        "bad.log" => Ok("no log\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    };
    let mut workload = parse_with(&text, DRIVE, 1, &|_| None, &include)?;
    let job = &mut workload.jobs[0];
    let log = run_with(job, 100 * US);
    assert_eq!(job.requests_expected, Some(log.len() as u64));
    Ok(log)
}

/// Milliseconds, letter, offset and length of each request.
fn told(options: &str) -> Vec<(u64, char, u64, u64)> {
    let log = replayed(options).unwrap_or_else(|error| panic!("{error}"));
    let told = log.iter().map(|done| {
        let letter = match done.request.op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Trim => 't',
            Op::Flush => 'f',
        };
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = done.request;
        (done.submitted_ps / MS, letter, offset_bytes, length_bytes)
    });
    told.collect()
}

#[test]
fn requests_come_at_their_instants() {
    let as_logged = [
        (0, 'r', 0, 4096),
        (49, 'w', 8192, 4096),
        (99, 'r', 65_536, 65_536),
        (99, 'r', 131_072, 65_536),
        (99, 'f', 0, 0),
    ];
    assert_eq!(told(""), as_logged);
    // How generated requests would look does not matter.
    assert_eq!(
        told("rw=randwrite\nbs=512\nsize=4k\nloops=2\nreplay_redirect=/dev/y"),
        as_logged
    );
    let times = |options: &str| told(options).iter().map(|told| told.0).collect::<Vec<_>>();
    assert_eq!(times("replay_time_scale=50"), [0, 98, 198, 198, 199]);
    assert_eq!(times("replay_time_scale=200")[1..3], [24, 49]);
    assert_eq!(times("replay_no_stall=1"), [0; 5]);
    let offsets = |options: &str| told(options).iter().map(|told| told.2).collect::<Vec<_>>();
    assert_eq!(offsets("replay_scale=2"), [0, 4096, 32_768, 65_536, 0]);
    assert_eq!(offsets("replay_align=16384"), [0, 0, 65_536, 131_072, 0]);
}

#[test]
fn no_more_are_in_flight_than_the_job_says() {
    let ends = |options: &str| replayed(options).unwrap().last().unwrap().completed_ps / US;
    // One after the other, or all at once.
    assert_eq!(ends("replay_no_stall=1"), 500);
    assert_eq!(ends("replay_no_stall=1\nioengine=libaio\niodepth=8"), 100);
    assert_eq!(ends("replay_no_stall=1\nioengine=libaio\niodepth=4"), 200);
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let error = |options: &str| replayed(options).unwrap_err().to_string();
    assert_eq!(
        error("runtime=5"),
        "`runtime` is not supported with `read_iolog` (job.fio:2)"
    );
    assert_eq!(
        error("read_iolog=none.log"),
        "cannot read `none.log`: no such file (job.fio:3)"
    );
    assert_eq!(
        error("read_iolog=a:b"),
        "`read_iolog` must be the name of one log, without `:`, found `a:b` (job.fio:3)"
    );
    assert_eq!(
        error("replay_align=100"),
        "`replay_align` must be a power of 2, found `100` (job.fio:3)"
    );
    assert!(error("read_iolog=bad.log").contains("bad.log"));
    assert!(error("replay_skip=read").starts_with("`replay_skip` is not supported"));
}
