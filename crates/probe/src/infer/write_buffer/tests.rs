//! What single commands tell of a write buffer.

use super::*;

fn of_us(write: f64, dirty: f64, clean: f64, old_read: f64) -> WriteBufferArm {
    WriteBufferArm {
        write_ns: write * 1e3,
        flush_dirty_ns: dirty * 1e3,
        flush_clean_ns: clean * 1e3,
        old_read_ns: old_read * 1e3,
        fresh_read_ns: old_read * 1e3,
        bytes: None,
        fill_rate: 0.0,
        drain_rate: 0.0,
        looks: WriteLooks::default(),
    }
}

/// A drive without a write buffer in an emulated guest: the first command after a long wait takes the guest 0.2 ms more,
/// and that was taken for flash that the flush waited for.
#[test]
fn a_flush_that_waits_for_a_trifle_of_the_write_shows_no_buffer() {
    assert!(!of_us(58_166.0, 601.4, 385.8, 2_600.0).is_buffered());
    // The same drive with a buffer.
    assert!(of_us(600.0, 58_000.0, 385.8, 2_600.0).is_buffered());
    // Behind a network that takes longer than fast flash.
    assert!(of_us(500.0, 760.0, 490.0, 560.0).is_buffered());
}
