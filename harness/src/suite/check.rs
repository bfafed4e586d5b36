//! What is allowed in a suite and still surely not meant.

use squall_profiles::error::ProfileError;

use super::{Active, Contract, ContractPart, Scenario, Suite};
use crate::invariants::{Invariant, When};

/// Each with its place.
pub(super) fn doubts(suite: &Suite) -> Vec<ProfileError> {
    let mut doubts = Vec::new();
    if let Some(ContractPart::Written(contract)) = &suite.contract {
        let scenarios: Vec<_> = contract.scenarios.iter().map(Scenario::active).collect();
        for invariant in &contract.invariants {
            doubts.extend(never_applies(invariant, &scenarios));
        }
        doubts.extend(only_clean(contract));
    }
    let of_chaos = suite.chaos.iter().map(|chaos| Active::of(chaos));
    let mut runs: Vec<_> = of_chaos.collect();
    runs.push(Active::default());
    for invariant in &suite.invariants {
        doubts.extend(never_applies(invariant, &runs));
    }
    doubts
}

/// No scenario has what the invariant's `when` asks for.
fn never_applies(invariant: &Invariant, scenarios: &[Active]) -> Option<ProfileError> {
    let applies = scenarios.iter().any(|one| invariant.when.applies(*one));
    let doubtful = !applies && invariant.when != When::Always;
    doubtful.then(|| {
        let message = format!(
            "invariant `{}` is never judged: no scenario fits `when: {}`",
            invariant.id,
            invariant.when.as_str()
        );
        invariant.place.error(message)
    })
}

/// Every scenario is a clean one.
fn only_clean(contract: &Contract) -> Option<ProfileError> {
    let clean = contract.scenarios.iter().all(|one| !one.active().any());
    let first = contract.scenarios.first().filter(|_| clean)?;
    Some(ProfileError {
        file: first.chaos.file.to_string(),
        position: first.position,
        pointer: String::new(),
        message: format!(
            "no scenario of contract `{}` has any chaos in it; nothing will be shown about failures",
            contract.name
        ),
    })
}
