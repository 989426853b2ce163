//! When jobs start and end: stages, jobs that wait for others, jobs that end with others.

use super::{Observer, Ramp, Runner};
use lodger_core::observe::Tracer;
use lodger_workload::{Ends, Job};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its stage has not begun, or it waits for others.
    Waiting,
    Running,
    Done,
}

/// Which jobs start when.
#[derive(Debug)]
pub(super) struct Order {
    standing: Vec<Standing>,
    /// Jobs of the present stage that wait for others.
    held: Vec<u32>,
    /// Nothing starts any more.
    over: bool,
    /// The flow of each job; empty where none has one.
    flows: Vec<Option<u64>>,
}

impl Order {
    pub(super) fn new(jobs: &[Job]) -> Self {
        Self {
            standing: vec![Standing::Waiting; jobs.len()],
            held: Vec::new(),
            over: false,
            flows: match jobs.iter().any(|job| job.flow().is_some()) {
                true => jobs.iter().map(Job::flow).collect(),
                false => Vec::new(),
            },
        }
    }

    #[inline]
    pub(super) fn has_flows(&self) -> bool {
        !self.flows.is_empty()
    }

    #[inline]
    pub(super) fn stands(&self, job: usize) -> Standing {
        self.standing[job]
    }

    fn may_start(&self, job: &Job) -> bool {
        let done = |place: &usize| self.standing[*place] == Standing::Done;
        job.after.iter().all(done)
    }
}

impl<O: Observer, T: Tracer> Runner<'_, O, T> {
    pub(super) fn begin_stage(&mut self, stage: u32) {
        if self.order.over {
            return;
        }
        for index in 0..self.jobs.len() {
            if self.jobs[index].stage != stage {
                continue;
            }
            if self.order.may_start(&self.jobs[index]) {
                self.begin(index);
            } else {
                self.order.held.push(index as u32);
            }
        }
        self.look_for_ramp();
    }

    fn begin(&mut self, index: usize) {
        let now_ps = self.host.now_ps();
        self.order.standing[index] = Standing::Running;
        self.results[index].begin(&self.jobs[index], now_ps);
        let counted_from_ps = self.results[index].counted_from_ps();
        self.observer.begins(index, counted_from_ps);
        self.steady.begin(index, now_ps);
        self.make_ready(index as u32);
        self.left += 1;
    }

    /// A job is done: others may start, or end with it.
    #[cold]
    pub(super) fn job_done(&mut self, index: usize) {
        self.left -= 1;
        self.order.standing[index] = Standing::Done;
        if self.results[index].has_ramp() {
            self.tell_ramp(Ramp::Counts);
        }
        if let Some(ends) = self.jobs[index].ends_now() {
            self.end_with(index, ends);
        }
        if self.order.over {
            self.order.held.clear();
        }
        let held = std::mem::take(&mut self.order.held);
        for job in held {
            if self.order.may_start(&self.jobs[job as usize]) {
                self.begin(job as usize);
            } else {
                self.order.held.push(job);
            }
        }
        self.look_for_ramp();
    }

    /// A job was asked: if it has done something since so many were submitted, others of its flow may go on.
    #[cold]
    pub(super) fn tell_flow(&mut self, index: usize, submitted: u64) {
        let Some(flow) = self.order.flows[index] else {
            return;
        };
        let done = self.order.standing[index] == Standing::Done;
        if self.results[index].submitted == submitted && !done {
            return;
        }
        for other in 0..self.order.flows.len() {
            let running = self.order.standing[other] == Standing::Running;
            if other != index && running && self.order.flows[other] == Some(flow) {
                self.make_ready(other as u32);
            }
        }
    }

    fn end_with(&mut self, index: usize, ends: Ends) {
        self.order.over |= ends == Ends::All;
        let group = self.jobs[index].group;
        for other in 0..self.jobs.len() {
            let running = self.order.standing[other] == Standing::Running;
            let concerned = match ends {
                Ends::Group => self.jobs[other].group == group,
                Ends::Running => running,
                Ends::All => true,
            };
            if concerned {
                self.end_job(other);
            }
        }
    }

    /// A job is to submit nothing more.
    pub(super) fn end_job(&mut self, index: usize) {
        let standing = self.order.standing[index];
        if standing != Standing::Done {
            self.jobs[index].stop();
        }
        if standing == Standing::Running {
            self.make_ready(index as u32);
        }
    }
}
