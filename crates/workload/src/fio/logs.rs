//! The log files that a job asks for: `write_bw_log`, `write_iops_log`, `write_lat_log`.

use super::ini::Setting;
use crate::WorkloadError;

/// Log files of one job, as fio writes them; writing them is for whoever runs the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Begins of file names, without `_bw.1.log`. `None` for a log that is not written.
    pub bandwidth: Option<String>,
    /// The same for `_iops.1.log`.
    pub iops: Option<String>,
    /// The same for `_slat.1.log`, `_clat.1.log` and `_lat.1.log`.
    pub latency: Option<String>,
    /// Number of the job among all of the file, clones included.
    pub number: u64,
    /// One line for so much time instead of one for each request (`log_avg_msec`), ms; 0 for each.
    pub window_ms: u64,
    /// With a column of offsets (`log_offset`).
    pub offsets: bool,
    /// The last column is the whole priority, as a hexadecimal number (`log_prio`).
    pub priorities: bool,
    /// The engine waits for each request, so that fio sees no submission by itself.
    pub waits: bool,
}

/// What a job section says about log files.
#[derive(Clone, Debug, Default)]
pub(super) struct LogOptions {
    bandwidth: Option<String>,
    iops: Option<String>,
    latency: Option<String>,
    window_ms: u64,
    offsets: bool,
    priorities: bool,
    /// Options that change what the logs hold in a way that is not written here.
    changed: Vec<&'static str>,
}

/// Options that matter to log files alone, and values with which they change nothing.
pub(super) const DETAILS: &[(&str, &[&str])] = &[
    ("disable_bw", &["0"]),
    ("disable_clat", &["0"]),
    ("disable_lat", &["0"]),
    ("disable_slat", &["0"]),
    ("gtod_reduce", &["0"]),
    ("log_alternate_epoch", &["0"]),
    ("log_issue_time", &["0"]),
    ("log_max_value", &["0", "avg"]),
    ("log_store_compressed", &["0"]),
    ("log_unix_epoch", &["0"]),
    ("log_window_value", &["0", "avg"]),
    ("per_job_logs", &["1"]),
];

impl LogOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &'static str, s: &Setting) -> Result<bool, WorkloadError> {
        // Without a name it is the job's, which is the empty one here.
        match name {
            "write_bw_log" => self.bandwidth = Some(s.text().to_owned()),
            "write_iops_log" => self.iops = Some(s.text().to_owned()),
            "write_lat_log" => self.latency = Some(s.text().to_owned()),
            "log_avg_msec" => self.window_ms = s.whole(0..=u64::from(u32::MAX))?,
            "log_offset" => self.offsets = s.flag()?,
            "log_prio" => self.priorities = s.flag()?,
            _ => {
                let Some((_, neutral)) = DETAILS.iter().find(|(detail, _)| *detail == name) else {
                    return Ok(false);
                };
                self.changed.retain(|other| *other != name);
                let is_bare_no = s.value.is_none() && name == "per_job_logs";
                if !neutral.contains(&s.text()) && !is_bare_no {
                    self.changed.push(name);
                }
            }
        }
        Ok(true)
    }

    /// The option that keeps the logs from being as fio writes them, if logs are asked for.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        let asked = self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some();
        self.changed.first().copied().filter(|_| asked)
    }

    /// The logs of one clone.
    pub(super) fn of_job(&self, job: &str, number: u64, waits: bool) -> Option<Box<Logs>> {
        let name = |given: &Option<String>| match given.as_deref() {
            Some("") => Some(job.to_owned()),
            given => given.map(str::to_owned),
        };
        let logs = Logs {
            bandwidth: name(&self.bandwidth),
            iops: name(&self.iops),
            latency: name(&self.latency),
            number,
            window_ms: self.window_ms,
            offsets: self.offsets,
            priorities: self.priorities,
            waits,
        };
        let asked = logs.bandwidth.is_some() || logs.iops.is_some() || logs.latency.is_some();
        asked.then(|| Box::new(logs))
    }
}
