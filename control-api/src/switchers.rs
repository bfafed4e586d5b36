//! Who switched what is in force: the name of a token for each activation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use squall_journal::activation::ActivationRecord;
use squall_proxy::chaos::Chaos;

use crate::lock;

/// Names of tokens by activation. As bounded as the activations in force.
#[derive(Debug, Default)]
pub struct Switchers(Mutex<BTreeMap<String, String>>);

impl Switchers {
    /// Adds who started an activation, and forgets those of activations that have ended.
    pub(crate) fn add(&self, chaos: &Chaos, record: &ActivationRecord, name: &str) {
        let Some(activation) = &record.activation else {
            return;
        };
        let in_force = chaos.list().into_iter().filter_map(|one| one.activation);
        let in_force: BTreeSet<String> = in_force.collect();
        let mut names = lock(&self.0);
        names.retain(|activation, _| in_force.contains(activation));
        names.insert(activation.clone(), name.to_owned());
    }

    /// The name of the token that started an activation, if it is known.
    pub(crate) fn of(&self, record: &ActivationRecord) -> Option<String> {
        let activation = record.activation.as_ref()?;
        lock(&self.0).get(activation).cloned()
    }
}
