//! How far repeats of the same asking agree.

use super::share;

/// What repeats come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stability {
    /// Askings that could be judged in every repeat.
    pub judged: u64,
    /// Those of them that passed every time (pass^k).
    pub always_passed: u64,
    /// Those of them that passed at times and failed at others.
    pub flaky: u64,
    /// `always_passed` of `judged`, 0 to 100; `None` when nothing could be judged.
    pub pass_k: Option<f64>,
}

/// Of every asking what each of its repeats came to; `None`: it could not be judged.
pub fn stability<'a>(askings: impl IntoIterator<Item = &'a [Option<bool>]>) -> Stability {
    let mut stability = Stability::default();
    for repeats in askings {
        let Some(judged) = repeats.iter().copied().collect::<Option<Vec<bool>>>() else {
            continue;
        };
        let passed = judged.iter().filter(|passed| **passed).count();
        stability.judged += 1;
        stability.always_passed += u64::from(passed == judged.len());
        stability.flaky += u64::from(passed > 0 && passed < judged.len());
    }
    stability.pass_k = share(stability.always_passed, stability.judged);
    stability
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_at_times_is_flaky_and_what_was_not_judged_every_time_counts_nowhere() {
        let (yes, no, nobody) = (Some(true), Some(false), None);
        let askings: [&[Option<bool>]; 5] = [
            &[yes, yes, yes],
            &[yes, no, yes],
            &[no, no, no],
            &[yes, nobody, yes],
            &[yes, yes, yes],
        ];
        let found = stability(askings);
        assert_eq!((found.judged, found.always_passed, found.flaky), (4, 2, 1));
        assert_eq!(found.pass_k, Some(50.0));
        let nothing: [&[Option<bool>]; 1] = [&[nobody]];
        assert_eq!(stability(nothing), Stability::default());
    }
}
