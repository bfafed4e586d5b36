//! Which differences between two runs are beyond chance.
//!
//! Fisher's exact test compares how often invocations and cells pass, the Mann–Whitney U test compares numbers. The
//! test of all invocations has half of the error probability. The others share the other half by Holm's method
//! (S. Holm, 1979), without those that could never be significant (R. E. Tarone, 1990).

use std::collections::BTreeMap;

use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};
use statrs::stats_tests::{Alternative, fishers_exact};

use super::share::score_of;
use crate::invariants::measures::quantile;
use crate::run::{CellRecord, CellState, DistributionRecord, ScenarioRecord, ShiftRecord};

/// The highest probability of any difference between equal runs.
const ALPHA: f64 = 0.05;

/// The fewest values of a run in a test of numbers: of fewer, no difference is significant.
const LEAST: usize = 4;

/// What was executed in a run.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'r> {
    /// The judged cells.
    pub cells: &'r [&'r CellRecord],
    /// The record of each scenario.
    pub scenarios: &'r [ScenarioRecord],
    /// The distributions of the invocations' numbers.
    pub distributions: &'r [DistributionRecord],
}

/// The tested differences between two runs.
#[derive(Debug, Default)]
pub(super) struct Tested {
    /// Those beyond chance, most certain first.
    pub(super) shifts: Vec<ShiftRecord>,
    /// The number of tests.
    pub(super) tests: u64,
    /// Cells with another share of passed invocations, in too few invocations to test.
    pub(super) untested: u64,
}

/// Tests every cell, scenario and number that both runs have.
pub(super) fn tested(before: Executed<'_>, now: Executed<'_>) -> Tested {
    let mut result = Tested::default();
    let (earlier, later) = (totals(before.scenarios), totals(now.scenarios));
    let both = earlier
        .iter()
        .filter_map(|(name, then)| Some((then, later.get(name)?)));
    let sums = both.fold([PassCounts::default(); 2], |[a, b], (then, now)| {
        [a.plus(*then), b.plus(*now)]
    });
    let all = passes(ShiftRecord::default(), sums);
    let mut others = Vec::new();
    let (earlier, later) = (counts(before.cells), counts(now.cells));
    for (key @ (scenario, invariant, mutation), then) in &earlier {
        let Some(now) = later.get(key) else {
            continue;
        };
        let shift = ShiftRecord {
            scenario: Some((*scenario).to_owned()),
            invariant: Some((*invariant).to_owned()),
            mutation: mutation.map(str::to_owned),
            ..ShiftRecord::default()
        };
        let test = passes(shift, [*then, *now]);
        let is_other = then.passed * now.all() != now.passed * then.all();
        result.untested += u64::from(is_other && test.is_none());
        others.extend(test);
    }
    let (earlier, later) = (values(before.distributions), values(now.distributions));
    let mut pooled: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for (key @ (of, scenario), then) in &earlier {
        let Some(now) = later.get(key) else {
            continue;
        };
        let all = pooled.entry(*of).or_default();
        all[0].extend(then);
        all[1].extend(now);
        others.extend(numbers(of, Some(*scenario), [then, now]));
    }
    if earlier.len() > pooled.len() {
        let pooled = pooled.iter();
        others.extend(pooled.filter_map(|(of, [then, now])| numbers(of, None, [then, now])));
    }
    result.tests = (others.len() + usize::from(all.is_some())) as u64;
    holm(&mut others);
    let tested = all.into_iter().chain(others).map(|one| ShiftRecord {
        // Half of the error probability.
        p: (one.p * 2.0).min(1.0),
        ..one
    });
    result.shifts = tested.filter(|one| one.p <= ALPHA).collect();
    result
        .shifts
        .sort_by(|one, other| one.p.total_cmp(&other.p));
    result
}

/// Corrects the probabilities, sorted, for the number of tests.
fn holm(tests: &mut [ShiftRecord]) {
    tests.sort_by(|one, other| one.p.total_cmp(&other.p));
    let (mut least, mut left) = (0.0_f64, tests.len());
    for test in tests {
        #[expect(clippy::cast_precision_loss, reason = "a number of tests")]
        let corrected = (test.p * left as f64).min(1.0);
        least = least.max(corrected);
        (test.p, left) = (least, left - 1);
    }
}

/// Passed and failed invocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PassCounts {
    passed: u64,
    failed: u64,
}

impl PassCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
        }
    }

    fn all(self) -> u64 {
        self.passed + self.failed
    }

    fn share(self) -> Option<f64> {
        score_of(self.passed, self.all())
    }
}

fn totals(scenarios: &[ScenarioRecord]) -> BTreeMap<&str, PassCounts> {
    let mut totals: BTreeMap<&str, PassCounts> = BTreeMap::new();
    for one in scenarios {
        let total = totals.entry(&one.name).or_default();
        *total = total.plus(PassCounts {
            passed: one.passed,
            failed: one.judged.saturating_sub(one.passed),
        });
    }
    totals
}

type CellKey<'c> = (&'c str, &'c str, Option<&'c str>);

fn counts<'c>(cells: &[&'c CellRecord]) -> BTreeMap<CellKey<'c>, PassCounts> {
    let of = |cell: &CellRecord, state| {
        let states = cell.evidence.iter().filter(|one| one.state == Some(state));
        states.count() as u64
    };
    let counts = cells.iter().map(|cell| {
        let counts = PassCounts {
            passed: of(cell, CellState::Passed),
            failed: of(cell, CellState::Failed),
        };
        let mutation = cell.mutation.as_deref();
        ((&*cell.scenario, &*cell.invariant, mutation), counts)
    });
    counts.collect()
}

fn values(distributions: &[DistributionRecord]) -> BTreeMap<(&str, &str), Vec<f64>> {
    let mut values: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for one in distributions {
        let key = (one.of.as_str(), one.scenario.as_str());
        values.entry(key).or_default().extend(&one.values);
    }
    values
}

/// The test of shares; `None`: with these sums, no difference could be significant.
fn passes(shift: ShiftRecord, [before, now]: [PassCounts; 2]) -> Option<ShiftRecord> {
    let failed = before.failed + now.failed;
    let extreme = |most: u64, other: u64| {
        let here = failed.min(most);
        let rest = failed - here;
        [most - here, here, other - rest, rest]
    };
    let (first, second) = (before.all(), now.all());
    let least = fisher(extreme(first, second))?.min(fisher(extreme(second, first))?);
    if least > ALPHA / 2.0 {
        return None;
    }
    Some(ShiftRecord {
        of: "passed".to_owned(),
        before: before.share()?,
        after: now.share()?,
        values_before: first,
        values_after: second,
        p: fisher([before.passed, before.failed, now.passed, now.failed])?,
        ..shift
    })
}

/// Twice the smaller one-sided probability: the library's two-sided test is wrong for large counts.
fn fisher(table: [u64; 4]) -> Option<f64> {
    let less = fishers_exact(&table, Alternative::Less).ok()?;
    let greater = fishers_exact(&table, Alternative::Greater).ok()?;
    Some((less.min(greater) * 2.0).min(1.0))
}

/// The test of numbers; `None`: there are too few, or all are equal.
fn numbers(of: &str, scenario: Option<&str>, [before, now]: [&Vec<f64>; 2]) -> Option<ShiftRecord> {
    let mut all = before.iter().chain(now);
    if before.len().min(now.len()) < LEAST || all.all(|one| one.total_cmp(&before[0]).is_eq()) {
        return None;
    }
    // The library's exact method is wrong for groups of the same size.
    let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
    let (_, p) = mannwhitneyu(before, now, method, Alternative::TwoSided).ok()?;
    Some(ShiftRecord {
        of: of.to_owned(),
        scenario: scenario.map(str::to_owned),
        before: quantile(before, 0.5),
        after: quantile(now, 0.5),
        values_before: before.len() as u64,
        values_after: now.len() as u64,
        p,
        ..ShiftRecord::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::EvidenceRecord;

    /// A sequence of draws from 0 to 1 (splitmix64), the same each time.
    struct Draws(u64);

    impl Draws {
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    type Simulated = (
        Vec<CellRecord>,
        Vec<ScenarioRecord>,
        Vec<DistributionRecord>,
    );

    /// A run of 3 invariants in 10 scenarios, each invocation 10 times. Invariants hold with this probability;
    /// latency is skewed.
    fn simulated(draws: &mut Draws, holds: f64) -> Simulated {
        let (mut cells, mut scenarios, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
        for scenario in 0..10 {
            let name = format!("scenario {scenario}");
            let states: Vec<[bool; 3]> = (0..10)
                .map(|_| std::array::from_fn(|_| draws.next() < holds))
                .collect();
            cells.extend((0..3).map(|place| {
                CellRecord {
                    invariant: format!("invariant {place}"),
                    scenario: name.clone(),
                    severity: "high".to_owned(),
                    state: CellState::Passed,
                    reason: None,
                    faults_applied: 1,
                    mutation: None,
                    baseline_failed: false,
                    evidence: (states.iter())
                        .map(|states| EvidenceRecord {
                            state: Some(if states[place] {
                                CellState::Passed
                            } else {
                                CellState::Failed
                            }),
                            ..EvidenceRecord::default()
                        })
                        .collect(),
                }
            }));
            scenarios.push(ScenarioRecord {
                name: name.clone(),
                under_chaos: true,
                rules_applied: 10,
                invocations: 10,
                passed: states
                    .iter()
                    .filter(|states| !states.contains(&false))
                    .count() as u64,
                judged: 10,
                rules: Vec::new(),
                daemon: None,
            });
            distributions.push(distribution(
                &name,
                (0..10).map(|_| -draws.next().ln() * 500.0),
            ));
        }
        (cells, scenarios, distributions)
    }

    fn distribution(scenario: &str, values: impl Iterator<Item = f64>) -> DistributionRecord {
        DistributionRecord {
            scenario: scenario.to_owned(),
            of: "latency".to_owned(),
            values: values.collect(),
            ..DistributionRecord::default()
        }
    }

    fn executed<'r>(run: &'r Simulated, cells: &'r [&'r CellRecord]) -> Executed<'r> {
        Executed {
            cells,
            scenarios: &run.1,
            distributions: &run.2,
        }
    }

    fn compared(before: &Simulated, now: &Simulated) -> Tested {
        let [earlier, later] = [before, now].map(|run| run.0.iter().collect::<Vec<_>>());
        tested(executed(before, &earlier), executed(now, &later))
    }

    #[test]
    fn equal_runs_differ_beyond_chance_in_at_most_five_percent_and_a_drop_of_20_points_is_found() {
        let mut draws = Draws(42);
        let (mut alarms, mut uncorrected, mut found) = (0, 0, 0);
        for _ in 0..200 {
            let [before, same] = [(); 2].map(|()| simulated(&mut draws, 0.9));
            alarms += u32::from(!compared(&before, &same).shifts.is_empty());
            let mut numbers_of = before.2.iter().zip(&same.2);
            let is_alarm = numbers_of.any(|(then, now)| {
                let test = numbers("latency", None, [&then.values, &now.values]);
                test.is_some_and(|one| one.p <= ALPHA)
            });
            uncorrected += u32::from(is_alarm);
            let worse = simulated(&mut draws, 0.7);
            let shifts = compared(&before, &worse).shifts;
            let of_all = |one: &ShiftRecord| one.of == "passed" && one.invariant.is_none();
            found += u32::from(
                shifts
                    .iter()
                    .any(|one| of_all(one) && one.after < one.before),
            );
        }
        assert!(alarms <= 10, "{alarms} of 200");
        // Without the correction, the same pairs alarm more often.
        assert!(uncorrected > 40, "{uncorrected} of 200");
        assert!(found >= 196, "{found} of 200");
    }

    #[test]
    fn the_cell_and_the_number_that_moved_are_named() {
        let mut draws = Draws(7);
        let before = simulated(&mut draws, 1.0);
        let mut now = before.clone();
        for evidence in &mut now.0[4].evidence {
            evidence.state = Some(CellState::Failed);
        }
        now.2[3] = distribution(
            "scenario 3",
            before.2[3].values.iter().map(|one| one + 9000.0),
        );
        let found = compared(&before, &now);
        let names = found.shifts.iter().map(|one| {
            (
                one.of.as_str(),
                one.invariant.as_deref(),
                one.scenario.as_deref(),
            )
        });
        let names: Vec<_> = names.collect();
        assert_eq!(
            names,
            [
                ("passed", Some("invariant 1"), Some("scenario 1")),
                ("latency", None, Some("scenario 3")),
            ]
        );
        assert_eq!(
            (found.shifts[0].before, found.shifts[0].after),
            (100.0, 0.0)
        );
        // One failure of ten is no difference, and is counted.
        let mut now = before.clone();
        now.0[4].evidence[0].state = Some(CellState::Failed);
        let found = compared(&before, &now);
        assert!(found.shifts.is_empty());
        assert_eq!(found.untested, 1);
    }

    #[test]
    fn known_probabilities_come_out() {
        for (table, expected) in [
            ([5, 0, 0, 5], 0.007_937),
            ([3, 0, 0, 3], 0.1),
            ([30, 0, 24, 6], 0.023_7),
            ([300, 700, 350, 650], 0.019_28),
            ([9, 1, 9, 1], 1.0),
        ] {
            let found = fisher(table).expect("a probability");
            assert!((found - expected).abs() < 1e-4, "{table:?}: {found}");
        }
        let of = |values: &[f64]| values.to_vec();
        let (low, high) = (of(&[1.0, 2.0, 3.0, 4.0]), of(&[5.0, 6.0, 7.0, 8.0]));
        // By scipy.stats.mannwhitneyu(method="asymptotic").
        let found = numbers("calls", None, [&low, &high]).expect("a test").p;
        assert!((found - 0.030_383).abs() < 1e-5, "{found}");
        assert!(numbers("calls", None, [&of(&[1.0; 9]), &of(&[1.0; 9])]).is_none());
        assert!(numbers("calls", None, [&of(&[1.0; 3]), &of(&[9.0; 9])]).is_none());
    }
}
