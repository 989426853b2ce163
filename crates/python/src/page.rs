//! What pages of the Python package have in common with those of the command: their look and their script.

use pyo3::prelude::*;

/// A page up to its heading; the title is text, not HTML.
#[pyfunction]
pub fn page_head(title: &str) -> String {
    lodger_page::head(title)
}

/// The end of a page.
#[pyfunction]
pub fn page_foot() -> String {
    lodger_page::foot()
}
