//! Computes scores as shares of what was judged, 0 to 100.

/// `part` divided by `whole`, at most 100; `None` if `whole` is 0.
pub fn score_of(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let score = part.min(whole) as f64 * 100.0 / whole as f64;
    (whole > 0).then_some(score)
}

/// The weighted mean of scores, rounded to a billionth because sums of weights are not exact. `None` if all weights
/// are 0; a single score is returned unchanged.
pub(super) fn mean(weighed: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let weighed = weighed.into_iter().filter(|(_, weight)| *weight > 0.0);
    let weighed: Vec<_> = weighed.collect();
    if let [(only, _)] = weighed[..] {
        return Some(only);
    }
    let weights: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    let sum: f64 = weighed.iter().map(|(score, weight)| score * weight).sum();
    (weights > 0.0).then(|| (sum / weights * 1e9).round() / 1e9)
}

/// A score for a comparison with the minimum: with at least one decimal, and enough decimals to show which one is
/// greater.
pub fn score_beside(score: f64, least: f64) -> String {
    let told = (1..=12).map(|decimals| {
        let power = 10_f64.powi(decimals);
        (score * power).round() / power
    });
    let mut honest = told.filter(|told| (*told < least) == (score < least));
    honest.next().unwrap_or(score).to_string()
}

/// A minimum score from user input, 0 to 100; values up to 1 are fractions.
pub fn least_of(written: f64) -> f64 {
    if written > 1.0 {
        return written;
    }
    // Uses the decimal text, because 0.29 times 100 is less than 29 in binary.
    let hundredfold = format!("{written}e2").parse();
    hundredfold.unwrap_or(written * 100.0)
}

/// The quantile of the standard normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The bounds of the Wilson interval (E. B. Wilson, 1927) for `passed` of `all` at 95 %, without continuity
/// correction, 0 to 100. `None` if `all` is 0.
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
    // For 0 % and 100 %, centre and spread are equal except for rounding.
    let low = if none { 0.0 } else { bound(centre - spread) };
    let high = if every { 100.0 } else { bound(centre + spread) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_score_is_told_on_its_side_of_the_bar() {
        for (score, least, told) in [
            (200.0 / 3.0, 66.7, "66.67"),
            (200.0 / 3.0, 66.6, "66.7"),
            (200.0 / 3.0, 66.67, "66.667"),
            (200.0 / 3.0, 66.66, "66.7"),
            (58.0, 58.0, "58"),
            (99.99, 100.0, "99.99"),
        ] {
            let found = score_beside(score, least);
            let side: f64 = found.parse().expect("a number");
            assert_eq!(side < least, score < least, "{found} for {least}");
            assert_eq!(found, told, "{score} beside {least}");
        }
    }

    #[test]
    fn a_score_is_the_nearest_number() {
        for (part, whole, score) in [
            (29, 50, Some(58.0)),
            (57, 100, Some(57.0)),
            (1, 3, Some(100.0 / 3.0)),
            (0, 7, Some(0.0)),
            (9, 7, Some(100.0)),
            (0, 0, None),
        ] {
            assert_eq!(score_of(part, whole), score, "{part} of {whole}");
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "that is what is promised")]
    fn a_share_as_it_is_written_is_the_score_that_it_says() {
        for hundredths in 1_u32..=100 {
            let written: f64 = format!("{}", f64::from(hundredths) / 100.0)
                .parse()
                .expect("a number");
            assert_eq!(least_of(written), f64::from(hundredths));
        }
        for (written, least) in [(0.0, 0.0), (0.585, 58.5), (1.5, 1.5), (66.7, 66.7)] {
            assert_eq!(least_of(written), least);
        }
    }

    proptest! {
        #[test]
        fn a_mean_lies_between_its_parts(
            weighed in proptest::collection::vec((0.0..=100.0, 0.001..=1.0), 1..5),
        ) {
            let found = mean(weighed.iter().copied()).expect("a mean");
            let scores = || weighed.iter().map(|(score, _)| *score);
            prop_assert!(scores().fold(f64::MAX, f64::min) - 1e-8 <= found);
            prop_assert!(found <= scores().fold(f64::MIN, f64::max) + 1e-8);
        }
    }

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
