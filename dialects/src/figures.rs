//! Irregular figures for made-up answers: the same for the same draw, and nothing like each other.

/// The `place`th irregular figure that follows from `draw` (`SplitMix64`).
pub(crate) fn irregular(draw: u64, place: u64) -> u64 {
    let mut z = draw.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A random UUID (RFC 9562, version 4) made of the figures `place` and `place + 1`.
pub(crate) fn uuid(draw: u64, place: u64) -> String {
    let (high, low) = (irregular(draw, place), irregular(draw, place + 1));
    let high = (high & !0xf000) | 0x4000;
    let low = (low & (u64::MAX >> 2)) | (1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_that_it_is_random() {
        for draw in [0, 7, u64::MAX] {
            let id = uuid(draw, 0);
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(
                matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'),
                "{id}"
            );
        }
        assert_ne!(uuid(1, 0), uuid(2, 0));
    }
}
