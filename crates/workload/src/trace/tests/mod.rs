//! Tests by question.

mod damaged;
mod fits_the_drive;
mod hostile;
mod info;
mod options;
mod published;
mod reading;
mod recognition;
mod recorded;
mod replay;
mod requeued;
mod round_trip;
mod stream;
mod unpacked;

use super::{Description, Options, Record, Trace, load};
use crate::WorkloadError;
use lodger_core::Op;

fn read(text: &str) -> Result<(Trace, Description), WorkloadError> {
    load(text.as_bytes(), "t.trace", &Options::default())
}

/// Reads what must be readable.
fn read_well(text: &str) -> (Trace, Description) {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn records(text: &str) -> Vec<Record> {
    read_well(text).0.records().collect()
}

fn record(time_ps: u64, op: Op, offset_bytes: u64, length_bytes: u64) -> Record {
    Record {
        time_ps,
        op,
        fua: false,
        offset_bytes,
        length_bytes,
    }
}

/// Whether one of the notes contains all these words.
fn noted(description: &Description, words: &[&str]) -> bool {
    let says = |note: &String| words.iter().all(|word| note.contains(word));
    description.notes.iter().any(says)
}

/// One small file in the shape of every format: two reads and a write, 4 KiB at 8 KiB first.
mod samples {
    use crate::trace::Format;

    pub(super) const ALL: [(Format, &str); 17] = [
        (
            Format::Csv,
            "time_us,op,offset_bytes,length_bytes,flags\n0,R,8192,4096,\n1.5,W,0,512,FUA\n9,R,4096,512,\n",
        ),
        (
            Format::Csv,
            "time_us,op,offset_bytes,length_bytes\n0,R,8192,4096\n1.5,W,0,512\n9,R,4096,512\n",
        ),
        (
            Format::Msr,
            "128166372003061629,hm,1,Read,8192,4096,413\n128166372016382155,hm,1,Write,0,512,1330\n\
             128166372026382245,hm,1,Read,4096,512,20\n",
        ),
        (
            Format::Blkparse,
            "  8,0    1        1     0.000000000  4201  A   R 2064 + 8 <- (8,1) 16\n\
             \u{20} 8,0    1        2     0.000000412  4201  Q   R 16 + 8 [fio]\n\
             \u{20} 8,0    1        3     0.000001502  4201  G   R 16 + 8 [fio]\n\
             \u{20} 8,0    1        4     0.000002011  4201  P   N [fio]\n\
             \u{20} 8,0    1        5     0.000003011  4201  D   R 16 + 8 [fio]\n\
             \u{20} 8,0    1        6     0.000004412  4201  Q  WS 0 + 1 [fio]\n\
             \u{20} 8,0    1        7     0.000090000     0  C   R 16 + 8 [0]\n\
             \u{20} 8,0    1        8     0.000099412  4201  Q   R 8 + 1 [fio]\n\
             CPU1 (sda):\n Reads Queued:           2,        4KiB\n",
        ),
        (
            Format::Ftrace,
            "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
             \u{20}            fio-789     [000] .....  4455.092003: block_rq_issue: 259,0 R 4096 () 16 + 8 none,0,0 [fio]\n\
             \u{20}         <idle>-0       [000] d.h1.  4455.092103: block_rq_complete: 259,0 R () 16 + 8 none,0,0 [0]\n\
             \u{20} kworker/0:1H-12       [000] .....  4455.093003: block_rq_issue: 259,0 WS 512 () 0 + 1 none,0,0 [kworker/0:1H]\n\
             \u{20} my odd [task-12       [000] .....  4455.094003: block_rq_issue: 259,0 R 512 () 8 + 1 be,0,4 [my odd [task]\n",
        ),
        (
            Format::Ftrace,
            "fio 789 [000] 4455.092003: block:block_rq_issue: 259,0 R 4096 () 16 + 8 [fio]\n\
             fio 789 [000] 4455.092103: block:block_rq_issue: 259,0 W 512 () 0 + 1 [fio]\n\
             fio 789 [000] 4455.092203: block:block_rq_issue: 259,0 R 512 () 8 + 1 [fio]\n",
        ),
        (
            Format::FioIolog,
            "fio version 3 iolog\n22 /dev/sdb add\n162 /dev/sdb open\n169 /dev/sdb read 8192 4096\n\
             397 /dev/sdb write 0 512\n400 /dev/sdb read 4096 512\n579 /dev/sdb close\n",
        ),
        (
            Format::FioIolog,
            "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 8192 4096\n\
             /dev/sdb write 0 512\n/dev/sdb read 4096 512\n/dev/sdb close\n",
        ),
        (
            Format::Mqsim,
            "4851300 1 16 8 1\n4864300 7 0 1 0\n4871300 1 8 1 1\n",
        ),
        (
            Format::Alibaba,
            "419,R,8192,4096,1577808144360767\n419,W,0,512,1577808144360800\n419,R,4096,512,1577808144360900\n",
        ),
        (
            Format::Tencent,
            "1538323200,16,8,0,1063\n1538323200,0,1,1,1063\n1538323201,8,1,0,1063\n",
        ),
        (
            Format::Systor,
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,8192,4096\n\
             1456095145.134076000,0.000806000,W,0,0,512\n1456095145.233076000,0.000806000,R,0,4096,512\n",
        ),
        (
            Format::CloudPhysics,
            "version,time,op,size,lbn\n1,5633898,28,4096,16\n1,5633900,2a,512,0\n1,5633998,28,512,8\n",
        ),
        (
            Format::Spc,
            "0,16,4096,r,0.000000\n0,0,512,W,0.026214\n0,8,512,R,0.078643\n",
        ),
        (
            Format::Fiu,
            "89967195532165 4892 syslogd 16 8 R 6 0 531e779fd7ff3a1e1b0fa8a4ce1d4bb7\n\
             89968195792462 20782 gzip 0 1 W 6 0 56f11b711d91a065a2b6458eca924523\n\
             89968195892462 20782 gzip 8 1 R 6 0 56f11b711d91a065a2b6458eca924523\n",
        ),
        (
            Format::Biosnoop,
            "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
             0.000740    fio            1950   sda     R 16         4096      0.74\n\
             0.001350    kworker/0:1H   12     sda     W 0          512       0.61\n\
             0.005480    Chrome IO th   1950   sda     R 8          512       1.24\n",
        ),
        (
            Format::Biosnoop,
            "TIME(s)     COMM           PID     DISK      T    SECTOR     BYTES   P QUE(ms) LAT(ms)\n\
             0.000740    fio            1950    sda       RA   16         4096    R   0.010   0.740\n\
             0.001350    jbd2/sda1-8    12      sda       WFS  0          512     S   0.000   0.610\n\
             0.005480    fio            1950    sda       R    8          512     ?   0.020   1.240\n",
        ),
    ];
}
