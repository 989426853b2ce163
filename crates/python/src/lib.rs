//! `lodger._native`: the native half of the Python package `lodger`.
//!
//! Thin on purpose. It converts arguments, releases the interpreter while Rust works, and turns
//! errors into the package's exceptions. What users see beyond drives and workloads (results,
//! sweeps, plots) is Python, in `python/lodger`; `python/lodger/_native.pyi` declares what is here.

mod advise;
mod arguments;
mod columns;
mod command;
mod drive;
mod errors;
mod hmb_study;
mod log;
mod page;
mod probe;
mod session;
mod simulate;
mod studies;
mod supervise;
mod trace;
mod window_study;
mod workload;

use pyo3::prelude::*;

/// The native half of the package `lodger`. Import `lodger` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::advise::{Advice, advise, advise_window};
    #[pymodule_export]
    use super::command::main;
    #[pymodule_export]
    use super::drive::{Drive, Value, drives, restore_drive};
    #[pymodule_export]
    use super::hmb_study::hmb_study;
    #[pymodule_export]
    use super::page::{page_foot, page_head};
    #[pymodule_export]
    use super::probe::{Probed, experiments, probe};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::simulate::{Run, check_run, compare_page, compare_text, hmb_choice, simulate};
    #[pymodule_export]
    use super::studies::studies;
    #[pymodule_export]
    use super::supervise::Stop;
    #[pymodule_export]
    use super::trace::{trace_convert, trace_info};
    #[pymodule_export]
    use super::window_study::window_study;
    #[pymodule_export]
    use super::workload::{Workload, fio_options, restore_fio, restore_logging, restore_trace};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
