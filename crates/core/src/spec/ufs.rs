//! UFS links: M-PHY high-speed gears.

/// Gears and widths a drive file may name. UFS has one or two lanes (JESD220C, section 8).
pub(super) const LINKS: &[&str] = &[
    "HS-G1 x1", "HS-G1 x2", "HS-G2 x1", "HS-G2 x2", "HS-G3 x1", "HS-G3 x2", "HS-G4 x1", "HS-G4 x2",
    "HS-G5 x1", "HS-G5 x2",
];

/// Transfer request slots of a UFS host controller, and so commands at once (UFSHCI 2.1, register
/// CAP, field NUTRS: at most 32).
pub(crate) const TRANSFER_REQUEST_SLOTS: u32 = 32;

/// Bytes per second of one direction of one of [`LINKS`], after line coding.
///
/// A lane of gear 1 runs at 1457.6 Mb/s in rate series B and each gear doubles it (gear 3: 5.83,
/// gear 4: 11.66, gear 5: 23.32 Gb/s). Gears 1 to 5 code 8 bits in 10.
pub(super) fn bytes_per_s(link: &str) -> u64 {
    let digit = |at: usize| u64::from(link.as_bytes()[at] - b'0');
    let (gear, lanes) = (digit(4), digit(7));
    (1_457_600_000 << (gear - 1)) * lanes / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_after_line_coding() {
        assert_eq!(bytes_per_s("HS-G1 x1"), 145_760_000);
        assert_eq!(bytes_per_s("HS-G3 x2"), 1_166_080_000);
        assert_eq!(bytes_per_s("HS-G4 x2"), 2_332_160_000);
        for (at, link) in (0..).zip(LINKS) {
            let (gear, lanes) = (1 + at / 2, 1 + at % 2);
            assert_eq!(*link, format!("HS-G{gear} x{lanes}"));
        }
    }
}
