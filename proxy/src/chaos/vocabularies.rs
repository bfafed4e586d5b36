//! Reads the vocabularies that rules count by, off the path of exchanges.

use std::thread;

use squall_dialects::tokens::Counting;
use squall_profiles::ruleset::RuleSet;

/// Begins to read what `rules` may count by and has not been read. An exchange that counts before
/// that is done waits for it.
pub(super) fn warm(rules: &RuleSet) {
    let mut wanted: Vec<Counting> = rules
        .rules()
        .iter()
        .flat_map(|rule| rule.vocabularies())
        .filter(|counting| counting.if_read() != *counting)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    for counting in wanted {
        let name = counting.name().to_owned();
        let begun = thread::Builder::new()
            .name(name)
            .spawn(move || counting.warm());
        if let Err(error) = begun {
            tracing::debug!(%error, "a vocabulary is read when it is first needed");
        }
    }
}
