//! How far repeats of the same invocation agree.

use super::share::score_of;
use crate::run::StabilityRecord;

/// Of every invocation what each of its repeats came to; `None`: it could not be judged. What failed once never passes
/// always, however the others went.
pub fn stability<'a>(
    repeats: u64,
    invocations: impl IntoIterator<Item = &'a [Option<bool>]>,
) -> StabilityRecord {
    let (mut judged, mut always_passed, mut flaky) = (0, 0, 0);
    for repeats in invocations {
        let fails = repeats.contains(&Some(false));
        if repeats.contains(&None) && !fails {
            continue;
        }
        judged += 1;
        always_passed += u64::from(!fails);
        flaky += u64::from(fails && repeats.contains(&Some(true)));
    }
    StabilityRecord {
        repeats,
        judged,
        always_passed,
        flaky,
        pass_k: score_of(always_passed, judged),
    }
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
        let found = stability(3, invocations);
        assert_eq!((found.judged, found.always_passed, found.flaky), (6, 2, 2));
        assert_eq!(found.pass_k, Some(100.0 / 3.0));
        let nothing: [&[Option<bool>]; 1] = [&[nobody]];
        assert_eq!(stability(1, nothing).pass_k, None);
    }
}
