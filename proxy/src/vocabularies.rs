//! Loads vocabularies of models in the background.
//!
//! Loading takes some tenths of a second, on separate threads. It happens before the activation of
//! rules that count tokens, and for an exchange whose model needs another vocabulary. Only the
//! caller and that exchange wait.

use std::thread;

use squall_dialects::tokens::Counting;
use squall_profiles::ruleset::RuleSet;

/// Unloaded vocabularies that `rules` may count with.
pub(crate) fn of_rules(rules: &RuleSet) -> Vec<Counting> {
    let rules = rules.rules().iter();
    unread(rules.flat_map(|rule| rule.vocabularies()))
}

/// Unloaded vocabularies for a model's calls. For an unknown model, all vocabularies.
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

/// Loads them on a blocking thread and waits for it.
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

/// Starts to load them, without waiting.
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

    /// The vocabularies that a profile's rules may count with, loaded or not.
    fn of_chaos(chaos: &str) -> Vec<Counting> {
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
            assert_eq!(of_chaos(&chaos), expected, "{rule}");
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
