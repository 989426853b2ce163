//! `lodger._native.Session`: a drive that is asked command by command.

use crate::columns;
use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::simulate::precondition;
use lodger_core::{EntryId, WindowCall};
use lodger_run::report::counted;
use lodger_run::{Command, Error, HmbChoice, RunConfig};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// A drive that is asked command by command.
#[pyclass(module = "lodger._native")]
pub struct Session(lodger_run::Session);

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (drive, *, hmb, hmb_offer, precondition, seed))]
    fn py_new(
        py: Python<'_>,
        drive: &Drive,
        hmb: Option<String>,
        hmb_offer: Option<String>,
        precondition: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let config = RunConfig {
            drive: drive.to_run(),
            hmb: HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?,
            precondition: self::precondition(precondition).or_raise(py)?,
            seed,
        };
        let opened = py.detach(|| lodger_run::Session::open(&config));
        Ok(Session(opened.or_raise(py)?))
    }

    /// A session that goes on from here by itself.
    fn branch(&self, py: Python<'_>) -> Self {
        let session = &self.0;
        Session(py.detach(|| session.clone()))
    }

    /// The whole state.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let session = &self.0;
        let state = py.detach(|| session.save()).or_raise(py)?;
        Ok(PyBytes::new(py, &state))
    }

    /// The session that a state is of.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        let loaded = py.detach(|| lodger_run::Session::load(state));
        Ok(Session(loaded.or_raise(py)?))
    }

    /// Name and text of the drive's file.
    fn drive_file(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let drive = self.0.drive().or_raise(py)?;
        Ok((drive.name.clone(), drive.parsed.to_toml()))
    }

    /// Runs one command and returns its latency, picoseconds.
    fn run(
        &mut self,
        py: Python<'_>,
        op: u8,
        offset: u64,
        length: u64,
        fua: bool,
    ) -> PyResult<u64> {
        let command = command(op, offset, length, fua).or_raise(py)?;
        // Too short to be worth releasing the interpreter.
        self.0.run(command).or_raise(py)
    }

    /// Runs commands, a column each, with `depth` in flight; returns their latencies, picoseconds.
    fn batch<'py>(
        &mut self,
        py: Python<'py>,
        ops: &[u8],
        offsets: &[u8],
        lengths: &[u8],
        fua: &[u8],
        depth: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let places = columns::to_u64(offsets).zip(columns::to_u64(lengths));
        let commands: Result<Vec<_>, Error> = ops
            .iter()
            .zip(fua)
            .zip(places)
            .map(|((&op, &fua), (offset, length))| command(op, offset, length, fua != 0))
            .collect();
        let commands = commands.or_raise(py)?;
        let session = &mut self.0;
        let latencies_ps = py.detach(|| session.batch(&commands, depth)).or_raise(py)?;
        columns::from_u64(py, &latencies_ps)
    }

    /// Makes one call of the byte window; returns its latency, picoseconds.
    fn window(&mut self, py: Python<'_>, name: &str, arguments: Vec<u64>) -> PyResult<u64> {
        let call = window_call(name, &arguments).or_raise(py)?;
        let session = &mut self.0;
        py.detach(|| session.call(call)).or_raise(py)
    }

    /// Leaves the drive alone for a while.
    fn idle(&mut self, py: Python<'_>, duration_ps: u64) {
        let session = &mut self.0;
        py.detach(|| session.idle(duration_ps));
    }

    /// Gives the drive another amount of host memory; returns what it was granted, bytes.
    fn set_hmb(
        &mut self,
        py: Python<'_>,
        hmb: Option<String>,
        hmb_offer: Option<String>,
    ) -> PyResult<u64> {
        let choice = HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?;
        let session = &mut self.0;
        py.detach(|| session.set_hmb(choice)).or_raise(py)
    }

    /// Requested, granted and usable host memory, bytes.
    #[getter]
    fn hmb(&self) -> (u64, u64, u64) {
        let hmb = self.0.hmb();
        (hmb.requested_bytes, hmb.granted_bytes, hmb.usable_bytes)
    }

    #[getter]
    fn warning(&self) -> Option<&str> {
        self.0.warning()
    }

    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.0.capacity_bytes()
    }

    #[getter]
    fn now_ps(&self) -> u64 {
        self.0.now_ps()
    }

    /// What the drive has counted, as JSON.
    fn counters(&self) -> String {
        counted(&self.0.map_tiers(), &self.0.counters()).to_string()
    }
}

fn command(op: u8, offset_bytes: u64, length_bytes: u64, fua: bool) -> Result<Command, Error> {
    let op = columns::op_of(op)
        .ok_or_else(|| Error::input(format!("operations are 0 to 3, found {op}")))?;
    Ok(Command {
        op,
        offset_bytes,
        length_bytes,
        fua,
    })
}

fn window_call(name: &str, arguments: &[u64]) -> Result<WindowCall, Error> {
    let number = |entry: u64| {
        let message = || Error::input(format!("entry numbers are 0 to 255, found {entry}"));
        u32::try_from(entry).map(EntryId).map_err(|_| message())
    };
    match (name, arguments) {
        ("pin", &[entry, window_offset_bytes, drive_offset_bytes, length_bytes]) => number(entry)
            .map(|entry| WindowCall::Pin {
                entry,
                window_offset_bytes,
                drive_offset_bytes,
                length_bytes,
            }),
        ("unpin", &[entry]) => number(entry).map(|entry| WindowCall::Flush { entry }),
        ("sync", &[entry]) => number(entry).map(|entry| WindowCall::Sync { entry }),
        ("read_dma", &[entry, offset_bytes, length_bytes]) => {
            number(entry).map(|entry| WindowCall::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            })
        }
        ("store", &[window_offset_bytes, length_bytes]) => Ok(WindowCall::Store {
            window_offset_bytes,
            length_bytes,
        }),
        ("load", &[window_offset_bytes, length_bytes]) => Ok(WindowCall::Load {
            window_offset_bytes,
            length_bytes,
        }),
        _ => Err(Error::input(format!(
            "there is no window call `{name}` of that form"
        ))),
    }
}
