//! Providers' official clients, unmodified: that they notice nothing of Squall, and how they take its
//! faults, which error they raise and how often they ask.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use squall_tests::{Path, Stage};

use crate::matrix::exchange;

/// A client and where it asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// Its script of `tests/clients`.
    pub(crate) script: &'static str,
    /// What the script is always told.
    pub(crate) arguments: &'static [&'static str],
    /// The path of its base URL.
    pub(crate) base: &'static str,
}

/// A fault, and what the client must make of it.
pub(crate) struct Case {
    /// Further arguments of the client's script.
    pub(crate) arguments: &'static [&'static str],
    /// The rule, `mode` included.
    pub(crate) rule: Value,
    /// Members of its JSON line, which must not all be there without the fault.
    pub(crate) told: Value,
    /// How often it asks.
    pub(crate) attempts: usize,
}

/// What a client that notices nothing leaves behind.
pub(crate) struct Unnoticed {
    /// What it told, by way.
    pub(crate) told: Vec<Value>,
    /// The journal's entries: every path of the first way, then those of the next.
    pub(crate) entries: Vec<Value>,
}

impl Client {
    /// A client that is told nothing more.
    pub(crate) const fn new(script: &'static str, base: &'static str) -> Self {
        Self {
            script,
            arguments: &[],
            base,
        }
    }

    /// What it tells of one call.
    pub(crate) fn ask(self, stage: &Stage, path: Path, more: &[&str]) -> Value {
        let arguments = [self.arguments, more].concat();
        stage.way(path, self.base).ask(self.script, &arguments)
    }

    /// What it gets through Squall is what it gets without, event for event, on a stage of its own.
    pub(crate) fn notices_nothing(
        self,
        stage: &Stage,
        dialect: &str,
        ways: &[&[&str]],
        paths: &[Path],
    ) -> Unnoticed {
        let mut told = Vec::new();
        let mut number = 0;
        for more in ways {
            let straight = self.ask(stage, Path::Direct, more);
            for &path in paths {
                let through = self.ask(stage, path, more);
                assert_eq!(through, straight, "{self:?} {path:?} {more:?}");
                number += 1;
                let entry = exchange(stage, number);
                assert_eq!(entry["kind"], "llm", "{entry}");
                assert_eq!(entry["dialect"], dialect, "{entry}");
                assert_eq!(entry["llm"]["stream"], more.contains(&"--stream"));
            }
            told.push(straight);
        }
        Unnoticed {
            told,
            entries: stage.daemon.api.wait_for_exchanges(number),
        }
    }

    /// What it tells without a rule and with it, when it gets an answer either way.
    pub(crate) fn without_and_with(
        self,
        stage: &Stage,
        rule: &Value,
        more: &[&str],
    ) -> (Value, Value) {
        let api = stage.daemon.api;
        api.calm();
        let without = self.ask(stage, Path::Reverse, more);
        api.chaos(&json!({ "llm_faults": [rule] }));
        let with = self.ask(stage, Path::Reverse, more);
        api.calm();
        for told in [&without, &with] {
            assert_eq!(told["ok"], true, "{self:?} {more:?} {rule}: {told}");
        }
        (without, with)
    }

    /// Each fault is told as expected, and nothing like it without the fault, on a stage of its own.
    pub(crate) fn tells(self, stage: &Stage, path: Path, cases: &[Case]) {
        let api = stage.daemon.api;
        let mut seen = 0;
        let mut clean: BTreeMap<&[&str], Value> = BTreeMap::new();
        for case in cases {
            let without = clean.entry(case.arguments).or_insert_with(|| {
                api.calm();
                let told = self.ask(stage, path, case.arguments);
                assert_eq!(told["ok"], true, "{self:?} {:?}: {told}", case.arguments);
                seen += 1;
                api.wait_for_exchanges(seen);
                told
            });
            assert!(
                differs(without, &case.told).is_some(),
                "{}: so it is without the fault, too: {without}",
                case.rule
            );
            api.chaos(&json!({ "llm_faults": [case.rule] }));
            let told = self.ask(stage, path, case.arguments);
            if let Some(member) = differs(&told, &case.told) {
                panic!(
                    "{self:?} {path:?} {:?} under {}: {member} is not {}: {told}",
                    case.arguments, case.rule, case.told[member]
                );
            }
            seen += case.attempts;
            let exchanges = api.wait_for_exchanges(seen);
            let attempts = case.attempts + exchanges.len() - seen;
            assert_eq!(attempts, case.attempts, "attempts under {}", case.rule);
        }
        api.calm();
    }
}

/// Whether it got one of the events twice in a row, and all else as without the fault.
pub(crate) fn got_one_twice(told: &Value, clean: &Value) -> bool {
    let events = |told: &Value| told.as_array().cloned().unwrap_or_default();
    let (told, clean) = (events(told), events(clean));
    let twice = |at: &usize| told[*at] == told[at - 1];
    let without = |at: usize| [&told[..at], &told[at + 1..]].concat();
    (1..told.len())
        .filter(twice)
        .any(|at| without(at) == clean && !clean.is_empty())
}

/// A member that is not as expected.
fn differs<'e>(told: &Value, expected: &'e Value) -> Option<&'e str> {
    let mut members = expected.as_object().into_iter().flatten();
    let other = members.find(|(name, value)| told[name.as_str()] != **value);
    other.map(|(name, _)| name.as_str())
}
