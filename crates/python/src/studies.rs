//! The studies that come with the program: files of the folder `studies/`, built in so that an
//! installed package has them.

use pyo3::prelude::*;
use std::collections::BTreeMap;

// `STUDIES`, names and texts, written by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// Texts of the studies that come with the program, by name.
#[pyfunction]
pub fn studies() -> BTreeMap<&'static str, &'static str> {
    STUDIES.iter().copied().collect()
}
