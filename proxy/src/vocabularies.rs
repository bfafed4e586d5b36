//! Vocabularies of models, read where nobody else has to wait for it.
//!
//! Reading one takes some tenths of a second. It is done on threads apart: before rules that count
//! are put in force, and for an exchange whose model needs one that was not read before. Only the
//! caller and that exchange wait.

use std::thread;

use squall_dialects::tokens::Counting;
use squall_profiles::ruleset::RuleSet;

/// What `rules` may count by and has not been read.
pub(crate) fn wanted(rules: &RuleSet) -> Vec<Counting> {
    let rules = rules.rules().iter();
    unread(rules.flat_map(|rule| rule.vocabularies()))
}

/// What the calls of a model are counted by and has not been read. A model that is not known may be
/// any.
pub(crate) fn of_model(model: Option<&str>) -> Vec<Counting> {
    match model {
        Some(model) => unread([Counting::of_model(model)]),
        None => unread([Counting::O200k, Counting::Cl100k]),
    }
}

fn unread(countings: impl IntoIterator<Item = Counting>) -> Vec<Counting> {
    let mut unread: Vec<Counting> = countings
        .into_iter()
        .filter(|counting| !counting.is_read())
        .collect();
    unread.sort_unstable();
    unread.dedup();
    unread
}

/// Reads them on a thread for work that blocks, and waits for it.
pub(crate) async fn read(unread: Vec<Counting>) {
    let reading = tokio::task::spawn_blocking(move || {
        for counting in unread {
            counting.read();
        }
    });
    if let Err(error) = reading.await {
        tracing::error!(%error, "a vocabulary could not be read ahead");
    }
}

/// Begins to read them, and waits for nothing.
pub(crate) fn begin(unread: Vec<Counting>) {
    for counting in unread {
        let name = counting.name().to_owned();
        let begun = thread::Builder::new()
            .name(name)
            .spawn(move || counting.read());
        if let Err(error) = begun {
            tracing::debug!(%error, "a vocabulary is read when it is first needed");
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_profiles::library::Library;
    use squall_profiles::profile::parse_chaos;
    use squall_profiles::tools::ToolNames;

    use super::*;

    /// What a profile's rules may count by, read or not.
    fn wanted(chaos: &str) -> Vec<Counting> {
        let profile = parse_chaos("test.yaml", "test", chaos).expect("valid");
        let rules = Library::default().rule_set_of(&profile, &ToolNames::default());
        let rules = rules.expect("compiles");
        let rules = rules.rules().iter();
        let mut wanted: Vec<_> = rules.flat_map(|rule| rule.vocabularies()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    #[test]
    fn only_rules_that_count_want_vocabularies() {
        use Counting::{Cl100k, O200k};
        for (rule, expected) in [
            ("{mode: truncated_response}", &[O200k][..]),
            ("{mode: truncated_response, model: 'gpt-4'}", &[Cl100k]),
            ("{mode: stream_cut, model: 'gpt-4*'}", &[O200k, Cl100k]),
            ("{mode: stream_cut, model: 'claude-*'}", &[]),
            ("{mode: rate_limit, tpm: 100}", &[O200k]),
            ("{mode: rate_limit, rpm: 100}", &[]),
            ("{mode: quota_exhausted, after_tokens: 100}", &[O200k]),
            ("{mode: quota_exhausted}", &[]),
            ("{mode: overloaded}", &[]),
            ("{mode: duplicate_chunk}", &[]),
        ] {
            let chaos = format!("{{llm_faults: [{rule}]}}");
            assert_eq!(wanted(&chaos), expected, "{rule}");
        }
    }

    #[tokio::test]
    async fn what_was_read_is_not_wanted_again() {
        read(of_model(Some("gpt-4"))).await;
        assert!(Counting::Cl100k.is_read());
        assert_eq!(of_model(Some("gpt-4")), []);
        assert_eq!(of_model(Some("claude-sonnet-4-5")), []);
        assert!(!of_model(None).contains(&Counting::Cl100k));
    }
}
