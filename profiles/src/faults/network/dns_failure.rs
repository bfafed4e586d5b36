//! `dns_failure`: the name cannot be resolved.

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// Nobody knows the name.
#[derive(Debug, Clone, PartialEq)]
pub struct DnsFailure;

impl FaultMode for DnsFailure {
    const NAME: &'static str = "dns_failure";

    fn is_of_the_connection(&self) -> bool {
        true
    }

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::DnsFailure)
    }
}
