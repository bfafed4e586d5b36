//! Shares as they were counted: exact, until one is shown.

/// Most that a share is of: whatever is counted more finely is rounded to that, so that a mean of four fits.
const FINEST: u128 = 1 << 23;

/// Parts of a weight: one of less is none.
const PARTS: f64 = 1_000_000.0;

/// A part of a whole, without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u128,
    whole: u128,
}

impl Share {
    /// `part` of `whole`, at most all of it; `None` of nothing.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        let (mut part, mut whole) = reduced(part.min(whole).into(), whole.into())?;
        while whole > FINEST {
            (part, whole) = (part / 2, whole / 2);
        }
        Some(Self { part, whole })
    }

    /// The mean of shares by what they weigh, to a millionth; `None` where nothing weighs anything.
    pub fn mean(weighed: impl IntoIterator<Item = (Self, f64)>) -> Option<Self> {
        let (mut sum, mut of, mut weights) = (0, 1, 0);
        for (share, weight) in weighed {
            let weight = parts(weight);
            sum = sum * share.whole + share.part * weight * of;
            of *= share.whole;
            weights += weight;
        }
        let (part, whole) = reduced(sum, of * weights)?;
        Some(Self { part, whole })
    }

    /// The score that it is, 0 to 100: the nearest number that there is.
    pub fn score(self) -> f64 {
        let Some((part, whole)) = reduced(self.part * 100, self.whole) else {
            return 0.0;
        };
        #[expect(clippy::cast_precision_loss, reason = "rounded once, and here")]
        let score = part as f64 / whole as f64;
        score
    }
}

/// A weight from 0 to 1 in parts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "weights are from 0 to 1"
)]
fn parts(weight: f64) -> u128 {
    (weight.clamp(0.0, 1.0) * PARTS).round() as u128
}

/// The same share in least numbers; `None` of nothing.
fn reduced(part: u128, whole: u128) -> Option<(u128, u128)> {
    let (mut common, mut rest) = (whole, part);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    (whole > 0).then(|| (part / common, whole / common))
}

/// A score as it is told beside the least that is demanded: with as few decimals, one at least, as tell on which side
/// of it it is.
pub fn told_beside(score: f64, least: f64) -> String {
    let told = (1..=12).map(|decimals| {
        let power = 10_f64.powi(decimals);
        (score * power).round() / power
    });
    let mut honest = told.filter(|told| (*told < least) == (score < least));
    honest.next().unwrap_or(score).to_string()
}

/// A least score as people write it, 0 to 100: up to 1 it is a share of that.
pub fn least_of(written: f64) -> f64 {
    if written > 1.0 {
        return written;
    }
    // As it is written, not as it is kept: 0.29 times 100 is less than 29.
    let hundredfold = format!("{written}e2").parse();
    hundredfold.unwrap_or(written * 100.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(part: u64, whole: u64) -> Share {
        Share::of(part, whole).expect("something")
    }

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
            let found = told_beside(score, least);
            let side: f64 = found.parse().expect("a number");
            assert_eq!(side < least, score < least, "{found} for {least}");
            assert_eq!(found, told, "{score} beside {least}");
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "that is what is promised")]
    fn a_score_is_rounded_once() {
        for (part, whole, score) in [
            (29, 50, 58.0),
            (57, 100, 57.0),
            (1, 3, 100.0 / 3.0),
            (2, 3, 200.0 / 3.0),
            (0, 7, 0.0),
            (7, 7, 100.0),
            (9, 7, 100.0),
            (u64::MAX / 2, u64::MAX - 1, 50.0),
        ] {
            assert_eq!(share(part, whole).score(), score, "{part} of {whole}");
        }
        assert_eq!(Share::of(0, 0), None);
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
        fn the_mean_of_one_share_is_that_share(part in 0_u64..500, more in 0_u64..500, weight in 0.001..=1.0) {
            prop_assume!(part + more > 0);
            let one = share(part, part + more);
            let mean = Share::mean([(one, weight)]).expect("a mean");
            prop_assert_eq!(mean.score().to_bits(), one.score().to_bits());
        }

        #[test]
        fn a_mean_lies_between_its_parts(
            counts in proptest::collection::vec((0_u64..1 << 40, 1_u64..1 << 40, 0.001..=1.0), 1..5),
        ) {
            let shares = counts.iter().map(|(part, whole, weight)| (share(*part, *whole), *weight));
            let scores: Vec<_> = shares.clone().map(|(share, _)| share.score()).collect();
            let mean = Share::mean(shares).expect("a mean").score();
            let least = scores.iter().copied().fold(f64::MAX, f64::min);
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            prop_assert!(least - 1e-9 <= mean && mean <= most + 1e-9);
        }
    }
}
