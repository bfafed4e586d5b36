//! Faults as a provider's official client takes them: which error it raises, and how often it asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use squall_tests::{Path, Stage};

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

/// Runs every case with `script` in reverse mode, `base` being its base URL's path.
pub(crate) fn official(stage: &Stage, script: &str, base: &str, cases: &[Case]) {
    let api = stage.daemon.api;
    let way = stage.way(Path::Reverse, base);
    let mut seen = 0;
    let mut clean: BTreeMap<&[&str], Value> = BTreeMap::new();
    for case in cases {
        let without = clean.entry(case.arguments).or_insert_with(|| {
            api.calm();
            let told = way.ask(script, case.arguments);
            assert_eq!(told["ok"], true, "{script} {:?}: {told}", case.arguments);
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
        let told = way.ask(script, case.arguments);
        if let Some(member) = differs(&told, &case.told) {
            panic!(
                "{script} {:?} under {}: {member} is not {}: {told}",
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

/// A member that is not as expected.
fn differs<'e>(told: &Value, expected: &'e Value) -> Option<&'e str> {
    let mut members = expected.as_object().into_iter().flatten();
    let other = members.find(|(name, value)| told[name.as_str()] != **value);
    other.map(|(name, _)| name.as_str())
}

/// What the client gets through Squall is what it gets without, event for event. The journal's
/// entries.
pub(crate) fn sees_no_difference(
    script: &str,
    base: &str,
    dialect: &str,
    ways: &[&[&str]],
) -> Vec<Value> {
    let stage = Stage::new();
    for (number, arguments) in (1..).zip(ways) {
        let ask = |path| stage.way(path, base).ask(script, arguments);
        let (straight, through) = (ask(Path::Direct), ask(Path::Reverse));
        assert_eq!(through, straight, "{arguments:?}");
        let entry = crate::matrix::exchange(&stage, number);
        assert_eq!(entry["dialect"], dialect, "{entry}");
        assert_eq!(entry["llm"]["stream"], arguments.contains(&"--stream"));
    }
    stage.daemon.api.wait_for_exchanges(ways.len())
}
