//! Distributions of the invocations' numbers.

use crate::invariants::measures::{Measure, Measured, quantile};
use crate::run::DistributionRecord;

/// The distribution of each number that is known of some invocation of a scenario.
pub(crate) fn distributions(scenario: &str, invocations: &[Measured]) -> Vec<DistributionRecord> {
    let of = |(name, measure): &(&str, Measure)| {
        let values = invocations.iter().filter_map(|one| one.value(*measure));
        let values: Vec<_> = values.collect();
        let [min, p50, p90, p95, max] =
            [0.0, 0.5, 0.9, 0.95, 1.0].map(|share| quantile(&values, share));
        (!values.is_empty()).then(|| DistributionRecord {
            scenario: scenario.to_owned(),
            of: (*name).to_owned(),
            values,
            min,
            p50,
            p90,
            p95,
            max,
        })
    };
    Measure::NAMES.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::answer::AgentAnswer;
    use crate::invariants::Prices;
    use crate::trace::Trace;

    #[test]
    fn each_known_number_has_its_quantiles() {
        let measured = (1..=5_u64).map(|number| {
            let answer = AgentAnswer {
                latency: Duration::from_millis(number * 100),
                ..AgentAnswer::of("ä".repeat(4))
            };
            Measured::of(&answer, &Trace::default(), &Prices::default())
        });
        let measured: Vec<_> = measured.collect();
        let found = distributions("outage", &measured);
        let names: Vec<_> = found.iter().map(|one| one.of.as_str()).collect();
        // Without prices, no cost is known.
        assert_eq!(names, ["latency", "length", "calls"]);
        let latency = &found[0];
        assert_eq!(latency.values, [100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!(
            (latency.min, latency.p50, latency.max),
            (100.0, 300.0, 500.0)
        );
        assert!(400.0 < latency.p90 && latency.p90 <= latency.p95 && latency.p95 <= 500.0);
        assert_eq!((found[1].min, found[1].max), (4.0, 4.0));
        assert!(distributions("none", &[]).is_empty());
    }
}
