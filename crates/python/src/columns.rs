//! Columns of numbers as bytes, in the machine's own order, as NumPy reads and writes them.

use lodger_core::Op;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// Operations by number, as fio's logs have them.
const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

/// The number of an operation.
pub fn op_number(op: Op) -> u8 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Flush => 3,
    }
}

/// The operation of a number.
pub fn op_of(number: u8) -> Option<Op> {
    OPS.get(usize::from(number)).copied()
}

/// Numbers as bytes.
pub fn from_u64<'py>(py: Python<'py>, values: &[u64]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 8 * values.len(), |bytes| {
        for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })
}

/// The same for 32 bits.
pub fn from_u32<'py>(py: Python<'py>, values: &[u32]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 4 * values.len(), |bytes| {
        for (place, value) in bytes.chunks_exact_mut(4).zip(values) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })
}

/// Bytes as numbers; a rest of less than 8 bytes is left out.
pub fn to_u64(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|chunk| {
        let mut value = [0; 8];
        value.copy_from_slice(chunk);
        u64::from_ne_bytes(value)
    })
}
