//! Usage of model calls: tokens and cost.
//!
//! A [`Spending`] is a running sum. A [`Charge`] is one call's share in some of them. It grows
//! while the response arrives, so the sums contain what an agent has received before its next call.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::prices::{self, Usd};

/// The usage of some calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls with any usage.
    pub calls: u64,
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens in both counts that Squall counted, because the provider did not report them.
    pub estimated: u64,
    /// Cost at list prices, without models that have no known price.
    pub cost: Usd,
    /// The first used model without a known price; empty if the model is unknown.
    pub unpriced: Option<Arc<str>>,
}

impl Spent {
    /// Input and output tokens.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The total cost; `None` if it is not known.
    pub fn usd(&self) -> Option<Usd> {
        self.unpriced.is_none().then_some(self.cost)
    }
}

/// A sum that several threads add to.
#[derive(Debug, Default)]
pub struct Spending {
    sum: Mutex<Spent>,
}

impl Spending {
    /// The current sum.
    pub fn now(&self) -> Spent {
        self.with(|sum| sum.clone())
    }

    /// Replaces a call's previous usage `before` by `now`.
    fn exchange(&self, before: &Spent, now: &Spent) {
        self.with(|sum| {
            // Upstreams may report absurd usage.
            let moved = |sum: u64, before: u64, now: u64| sum.saturating_add(now) - before;
            sum.calls = moved(sum.calls, before.calls, now.calls);
            sum.input = moved(sum.input, before.input, now.input);
            sum.output = moved(sum.output, before.output, now.output);
            sum.estimated = moved(sum.estimated, before.estimated, now.estimated);
            sum.cost = Usd(moved(sum.cost.0, before.cost.0, now.cost.0));
            if sum.unpriced.is_none() {
                sum.unpriced.clone_from(&now.unpriced);
            }
        });
    }

    /// The sum is consistent between any two statements, so a panic elsewhere is no reason to stop.
    fn with<T>(&self, act: impl FnOnce(&mut Spent) -> T) -> T {
        act(&mut self.sum.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The known usage of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens in both counts that Squall counted, because the provider did not report them.
    pub estimated: u64,
}

/// One call's share in sums.
#[derive(Debug)]
pub struct Charge {
    to: SmallVec<[Arc<Spending>; 1]>,
    so_far: Spent,
}

impl Charge {
    /// A call without usage yet, for each of these sums.
    pub fn new(to: impl IntoIterator<Item = Arc<Spending>>) -> Self {
        Self {
            to: to.into_iter().collect(),
            so_far: Spent::default(),
        }
    }

    /// Sets the call's total usage, which may be less than before. `model` is the requested model,
    /// if known.
    pub fn set(&mut self, model: Option<&str>, used: Used) {
        if used == Used::default() {
            return;
        }
        let price = model.and_then(prices::of_model);
        let unpriced = || Arc::from(model.unwrap_or_default());
        let now = Spent {
            calls: 1,
            input: used.input,
            output: used.output,
            estimated: used.estimated,
            cost: price.map_or(Usd(0), |price| price.of(used.input, used.output)),
            unpriced: price.is_none().then(unpriced),
        };
        if now != self.so_far {
            for sum in &self.to {
                sum.exchange(&self.so_far, &now);
            }
            self.so_far = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::PARTS;

    fn used(input: u64, output: u64, estimated: u64) -> Used {
        Used {
            input,
            output,
            estimated,
        }
    }

    #[test]
    fn a_call_counts_once_however_often_it_says_what_it_used() {
        let (one, other) = (Arc::new(Spending::default()), Arc::new(Spending::default()));
        let mut first = Charge::new([one.clone(), other.clone()]);
        let mut second = Charge::new([one.clone()]);
        second.set(Some("gpt-4o"), used(7, 1, 0));
        first.set(Some("gpt-4o"), used(0, 0, 0));
        assert_eq!(other.now(), Spent::default());
        for output in [3, 90, 40] {
            first.set(Some("gpt-4o"), used(100, output, output));
        }
        let sum = one.now();
        assert_eq!(
            (sum.calls, sum.input, sum.output, sum.estimated),
            (2, 107, 41, 40)
        );
        assert_eq!((other.now().calls, other.now().tokens()), (1, 140));
        // 2.50 and 10 dollars a million.
        assert_eq!(sum.usd(), Some(Usd::from_dollars(0.000_677_5)));
        assert_eq!(sum.cost.to_string(), "$0.0006775");
    }

    #[test]
    fn what_has_no_price_makes_the_sum_unknown() {
        for (model, named) in [(Some("my-model"), "my-model"), (None, "")] {
            let spending = Arc::new(Spending::default());
            Charge::new([spending.clone()]).set(Some("gpt-4o"), used(1, 1, 0));
            Charge::new([spending.clone()]).set(model, used(5, 5, 0));
            let sum = spending.now();
            assert_eq!((sum.tokens(), sum.usd()), (12, None));
            assert_eq!(sum.unpriced.as_deref(), Some(named));
        }
    }

    #[test]
    fn dollars_are_exact_to_a_millionth_of_a_cent() {
        for (dollars, parts) in [
            (0.0, 0),
            (1.0, PARTS),
            (0.000_000_01, PARTS / 100_000_000),
            (-1.0, 0),
            (1e30, u64::MAX),
        ] {
            assert_eq!(Usd::from_dollars(dollars), Usd(parts), "{dollars}");
        }
        assert_eq!(Usd::from_dollars(2.0).to_string(), "$2");
        assert_eq!(Usd::from_dollars(0.0).to_string(), "$0");
    }
}
