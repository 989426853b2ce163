//! Does a trace that is replayed while it is read give what one gives that is kept, and is the rest refused?

use super::replay::done;
use super::*;
use crate::trace::{Ending, Fit, Mode, stream};
use crate::{Job, Next, Workload};
use lodger_core::Request;
use std::io::{BufReader, Read};
use std::sync::mpsc;
use std::time::Duration;

const DRIVE_BYTES: u64 = 1 << 30;

fn streamed(
    text: &str,
    options: &Options,
    fit: Fit,
    mode: Mode,
) -> Result<Workload, WorkloadError> {
    let text = text.to_owned().into_bytes();
    let open = move || Ok(std::io::Cursor::new(text));
    stream(open, "t.trace", options.clone(), (DRIVE_BYTES, fit), mode)
}

/// All that a job asks for, with what it waits for in between; requests are done 3 us after they are asked for.
fn played(job: &mut Job) -> Vec<(u64, Next)> {
    let (mut now_ps, mut all) = (1_000, Vec::new());
    let mut under_way: Vec<Request> = Vec::new();
    loop {
        let next = job.next(now_ps);
        all.push((now_ps, next));
        match next {
            Next::Submit(request) => under_way.push(request),
            Next::At(at_ps) => now_ps = at_ps,
            Next::Done => return all,
            _ => {
                now_ps += 3_000_000;
                for request in under_way.drain(..) {
                    done(job, request, now_ps);
                }
            }
        }
    }
}

fn ending(job: &mut Job) -> Result<Ending, WorkloadError> {
    job.ending().expect("it has been read to its end")
}

/// Of both, what is asked for and what is said at the end.
pub(super) fn assert_same(text: &str, options: &Options, fit: Fit, mode: Mode) {
    let (mut trace, description) = load(text.as_bytes(), "t.trace", options).unwrap();
    let fitted = trace.fit(DRIVE_BYTES, fit).unwrap();
    let mut kept = trace.into_workload(mode).unwrap();
    let mut read = streamed(text, options, fit, mode).unwrap();
    assert_eq!(played(&mut kept.jobs[0]), played(&mut read.jobs[0]));
    let ending = ending(&mut read.jobs[0]).unwrap();
    assert_eq!(ending.description, description);
    assert_eq!(ending.fitted, fitted);
    assert_eq!(
        format!("{:?}", ending.recorded),
        format!("{:?}", kept.jobs[0].recorded)
    );
    assert_eq!(kept.jobs[0].options, read.jobs[0].options);
}

#[test]
fn every_format_gives_what_it_gives_as_a_whole() {
    for (format, text) in samples::ALL {
        let options = Options {
            format: Some(format),
            action: (format == crate::trace::Format::Blkparse).then_some('Q'),
            ..Options::default()
        };
        for mode in [Mode::Timed, Mode::Closed { queue_depth: 2 }] {
            assert_same(text, &options, Fit::Error, mode);
        }
    }
}

/// Many chunks; requests that are no whole blocks, longer than the drive, beyond it; latencies known of some.
fn long(requests: u64) -> String {
    let line = |at: u64| {
        let offset = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (3 * DRIVE_BYTES);
        let length = if at % 1000 == 7 {
            2 * DRIVE_BYTES
        } else {
            1 + at * 77 % 9000
        };
        let kind = if at.is_multiple_of(3) {
            "Write"
        } else {
            "Read"
        };
        let time = 128_166_372_000_000_000 + at / 3 * 40;
        format!("{time},hm,1,{kind},{offset},{length},{}\n", at % 500)
    };
    (0..requests).map(line).collect()
}

#[test]
fn long_traces_that_are_wrapped_are_the_same() {
    let text = long(100_000);
    for mode in [Mode::Timed, Mode::Closed { queue_depth: 32 }] {
        assert_same(&text, &Options::default(), Fit::Wrap, mode);
    }
}

/// Some of them trim nothing, the first and the last among them.
#[test]
fn trims_of_no_whole_blocks_are_the_same() {
    let head = "time_us,op,offset_bytes,length_bytes\n";
    let nothing = "1,D,1,700\n";
    let text = format!("{head}{nothing}7,D,1,8190\n9,R,1,8190\n12,D,3,99\n");
    for mode in [Mode::Timed, Mode::Closed { queue_depth: 2 }] {
        assert_same(&text, &Options::default(), Fit::Error, mode);
        assert_same(
            &format!("{head}{nothing}"),
            &Options::default(),
            Fit::Error,
            mode,
        );
    }
}

fn refused(text: &str, options: &Options, fit: Fit) -> WorkloadError {
    match streamed(text, options, fit, Mode::Timed) {
        Err(error) => error,
        Ok(mut workload) => {
            played(&mut workload.jobs[0]);
            ending(&mut workload.jobs[0]).unwrap_err()
        }
    }
}

#[test]
fn what_only_the_whole_trace_tells_is_refused_at_its_line() {
    let plain = Options::default();
    let head = "time_us,op,offset_bytes,length_bytes\n";
    let rows = "1,R,0,4096\n".repeat(20_000);
    let late = |row: &str| format!("{head}{rows}{row}");
    let cases = [
        (
            late("0,R,0,4096\n2,R,0,4096\n"),
            Fit::Error,
            "in order of time",
        ),
        (
            late("2,R,1073741824,512\n"),
            Fit::Error,
            "the drive ends at",
        ),
        (late("2,X,0,512\n3,R,0,512\n"), Fit::Error, "op"),
    ];
    for (text, fit, words) in cases {
        let error = refused(&text, &plain, fit);
        assert!(error.message.contains(words), "{error}");
        assert_eq!(error.place.unwrap().line, 20_002);
        assert!(error.hint.is_some());
    }
    let error = refused(&late(""), &plain, Fit::Scale);
    assert!(error.message.contains("--fit scale"), "{error}");
    let two = "128166372003061629,hm,1,Read,0,4096,4\n128166372003061630,hm,2,Read,0,4096,4\n";
    let error = refused(two, &plain, Fit::Error);
    assert!(error.message.contains("disk"), "{error}");
    assert_eq!(error.place.unwrap().line, 2);
    let named = Options {
        device: crate::trace::DeviceChoice::Named("hm.2".to_owned()),
        ..Options::default()
    };
    assert_same(two, &named, Fit::Error, Mode::Timed);
    // Known before anything is simulated.
    assert!(streamed("hello\nworld\n", &plain, Fit::Error, Mode::Timed).is_err());
}

/// The latencies counted before it could not be put together anew.
#[test]
fn an_end_out_of_order_is_refused_at_its_line() {
    let pair = |at: u64| {
        let (second, sector) = (at / 1000, at * 8);
        let (issued, done) = (at % 1000 * 1_000_000, at % 1000 * 1_000_000 + 90_000);
        format!(
            "  8,0    1        1 {second:5}.{issued:09}  4201  D   R {sector} + 8 [fio]\n  \
             8,0    1        1 {second:5}.{done:09}     0  C   R {sector} + 8 [0]\n"
        )
    };
    let in_order: String = (0..10_000).map(pair).collect();
    let options = Options {
        action: Some('D'),
        ..Options::default()
    };
    assert_same(&in_order, &options, Fit::Error, Mode::Timed);
    let end =
        |second: u64| format!("  8,0    1        1 {second:5}.000000000     0  C   R 24 + 8 [0]\n");
    // The end itself, and a request behind an end that is later.
    let begun: String = (0..3_000).map(pair).collect();
    let rest: String = (3_000..10_000).map(pair).collect();
    for (text, line) in [
        (format!("{in_order}{}", end(5)), 20_001),
        (format!("{begun}{}{rest}", end(1)), 6_001),
        (format!("{begun}{}{rest}", end(9)), 6_002),
    ] {
        let error = refused(&text, &options, Fit::Error);
        assert!(error.message.contains("in order of time"), "{error}");
        assert_eq!(error.place.unwrap().line, line);
    }
}

/// Some lines, and no more before it is told.
struct Stalling(std::io::Cursor<Vec<u8>>, mpsc::Receiver<()>);

impl Read for Stalling {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.read(into)?;
        if length == 0 {
            // Said once; then it has left.
            match self.1.recv_timeout(Duration::from_secs(100)) {
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    panic!("nothing is done with what was read")
                }
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(length)
    }
}

#[test]
fn what_has_been_read_is_handed_on_before_the_reader_waits() {
    let text = long(20_000).into_bytes();
    let (tell, told) = mpsc::channel();
    let open = move || Ok(BufReader::new(Stalling(std::io::Cursor::new(text), told)));
    let room = (DRIVE_BYTES, Fit::Wrap);
    let mode = Mode::Closed {
        queue_depth: 100_000,
    };
    let mut workload = stream(open, "t", Options::default(), room, mode).unwrap();
    for at in 0..20_000 {
        match workload.jobs[0].next(0) {
            Next::Submit(_) => {}
            other => panic!("{other:?} at {at}"),
        }
    }
    tell.send(()).unwrap();
    drop(tell);
    assert_eq!(workload.jobs[0].next(0), Next::Blocked);
}

/// Lines without end, and word of it when nobody reads them any more.
struct Endless(usize, mpsc::Sender<()>);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        const LINE: &[u8] = b"128166372003061629,hm,1,Read,8192,4096,413\n";
        for byte in into.iter_mut() {
            *byte = LINE[self.0 % LINE.len()];
            self.0 += 1;
        }
        Ok(into.len())
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

#[test]
fn an_endless_trace_is_left_when_its_replay_is() {
    let (left, hears) = mpsc::channel();
    let open = move || Ok(BufReader::new(Endless(0, left)));
    let room = (DRIVE_BYTES, Fit::Error);
    let mut workload = stream(open, "t", Options::default(), room, Mode::Timed).unwrap();
    for _ in 0..100_000 {
        assert!(matches!(workload.jobs[0].next(0), Next::Submit(_)));
    }
    assert!(hears.try_recv().is_err());
    drop(workload);
    hears.recv_timeout(Duration::from_secs(100)).unwrap();
}
