//! Every completed request, a column each.

use crate::columns;
use lodger_core::time::NS;
use lodger_core::{Completion, Request};
use lodger_run::RunResult;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};

/// The columns while a run fills them.
#[derive(Debug, Default)]
pub struct Log {
    submitted_ps: Vec<u64>,
    latency_ps: Vec<u64>,
    offset_bytes: Vec<u64>,
    length_bytes: Vec<u64>,
    job: Vec<u32>,
    op: Vec<u8>,
    status: Vec<u8>,
}

impl Log {
    /// Adds a request.
    pub fn push(&mut self, job: usize, request: &Request, completion: &Completion) {
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        self.submitted_ps.push(completion.submitted_ps);
        self.latency_ps.push(latency_ps);
        self.offset_bytes.push(request.offset_bytes);
        self.length_bytes.push(request.length_bytes);
        self.job.push(job as u32);
        self.op.push(columns::op_number(completion.op));
        self.status.push(completion.status as u8);
    }

    /// The columns for Python, under the names they have there. `submit_ps` is what of a latency
    /// is the submission.
    pub fn columns<'py>(
        mut self,
        py: Python<'py>,
        result: &RunResult,
        submit_ps: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        for latency in &mut self.latency_ps {
            // As fio's clat, and as the histogram counts it: from the doorbell on.
            *latency = latency.saturating_sub(submit_ps) / NS;
        }
        for submitted in &mut self.submitted_ps {
            *submitted /= NS;
        }
        let out = PyDict::new(py);
        out.set_item("submit_ns", columns::from_u64(py, &self.submitted_ps)?)?;
        out.set_item("latency_ns", columns::from_u64(py, &self.latency_ps)?)?;
        out.set_item("op", PyByteArray::new(py, &self.op))?;
        out.set_item("offset", columns::from_u64(py, &self.offset_bytes)?)?;
        out.set_item("length", columns::from_u64(py, &self.length_bytes)?)?;
        out.set_item("job", columns::from_u32(py, &self.job)?)?;
        out.set_item("status", PyByteArray::new(py, &self.status))?;
        let names: Vec<&str> = result.jobs.iter().map(|job| job.name.as_str()).collect();
        out.set_item("job_names", names)?;
        Ok(out)
    }
}
