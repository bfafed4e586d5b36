//! How far repeats of the same invocation agree.

use super::share::Share;

/// What repeats come to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stability {
    /// Invocations that could be judged in every repeat, or failed in one: what failed once never passes always.
    pub judged: u64,
    /// Those of them that passed every time (pass^k).
    pub always_passed: u64,
    /// Those of them that passed at times and failed at others.
    pub flaky: u64,
    /// `always_passed` of `judged`, 0 to 100; `None` when nothing could be judged.
    pub pass_k: Option<f64>,
}

/// Of every invocation what each of its repeats came to; `None`: it could not be judged.
pub fn stability<'a>(invocations: impl IntoIterator<Item = &'a [Option<bool>]>) -> Stability {
    let mut stability = Stability::default();
    for repeats in invocations {
        let (passes, fails) = (
            repeats.contains(&Some(true)),
            repeats.contains(&Some(false)),
        );
        if repeats.contains(&None) && !fails {
            continue;
        }
        stability.judged += 1;
        stability.always_passed += u64::from(!fails);
        stability.flaky += u64::from(passes && fails);
    }
    stability.pass_k = Share::of(stability.always_passed, stability.judged).map(Share::score);
    stability
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_at_times_is_flaky_and_what_may_have_passed_every_time_counts_nowhere() {
        let (yes, no, nobody) = (Some(true), Some(false), None);
        let invocations: [&[Option<bool>]; 8] = [
            &[no, nobody, no],
            &[nobody, no, yes],
            &[nobody, nobody, nobody],
            &[yes, yes, yes],
            &[yes, no, yes],
            &[no, no, no],
            &[yes, nobody, yes],
            &[yes, yes, yes],
        ];
        let found = stability(invocations);
        assert_eq!((found.judged, found.always_passed, found.flaky), (6, 2, 2));
        assert_eq!(found.pass_k, Some(100.0 / 3.0));
        let nothing: [&[Option<bool>]; 1] = [&[nobody]];
        assert_eq!(stability(nothing), Stability::default());
    }
}
