//! How far a share can be trusted: Wilson's score interval.

/// Of the standard normal distribution, for 95 of 100.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's interval (E. B. Wilson, 1927) of `passed` of `all` at 95 %, without correction for
/// continuity: its bounds, 0 to 100; `None` of nothing.
pub(super) fn interval(passed: u64, all: u64) -> Option<(f64, f64)> {
    if all == 0 {
        return None;
    }
    let (none, every) = (passed == 0, passed >= all);
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let (passed, all) = (passed.min(all) as f64, all as f64);
    let share = passed / all;
    let squared = Z * Z;
    let centre = share + squared / (2.0 * all);
    let spread = Z * (share * (1.0 - share) / all + squared / (4.0 * all * all)).sqrt();
    let bound = |value: f64| (value / (1.0 + squared / all) * 100.0).clamp(0.0, 100.0);
    // Of none and all centre and spread are equal, but for how they are rounded.
    let low = if none { 0.0 } else { bound(centre - spread) };
    let high = if every { 100.0 } else { bound(centre + spread) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_intervals_come_out() {
        for (passed, all, low, high) in [
            (0, 10, 0.0, 27.75),
            (5, 10, 23.66, 76.34),
            (10, 10, 72.25, 100.0),
            (81, 263, 25.53, 36.62),
        ] {
            let found = interval(passed, all).expect("something");
            assert!((found.0 - low).abs() < 0.01, "{passed}/{all}: {found:?}");
            assert!((found.1 - high).abs() < 0.01, "{passed}/{all}: {found:?}");
        }
        assert_eq!(interval(0, 0), None);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "that is what is promised")]
    fn none_and_all_end_where_there_is_no_more() {
        for all in 1..=1000 {
            assert_eq!(interval(0, all).expect("something").0, 0.0, "{all}");
            assert_eq!(interval(all, all).expect("something").1, 100.0, "{all}");
        }
    }

    proptest! {
        #[test]
        fn the_share_lies_within_and_more_of_it_narrows(passed in 0_u64..1000, failed in 0_u64..1000) {
            prop_assume!(passed + failed > 0);
            let all = passed + failed;
            let found = interval(passed, all).expect("something");
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let share = passed as f64 / all as f64 * 100.0;
            prop_assert!(0.0 <= found.0 && found.1 <= 100.0);
            prop_assert!(found.0 <= share + 1e-9 && share <= found.1 + 1e-9);
            let ten = interval(passed * 10, all * 10).expect("something");
            prop_assert!(ten.1 - ten.0 < found.1 - found.0);
        }
    }
}
