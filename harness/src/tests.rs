//! Gaps in flakestorm that a judge must close, one test each, named after its number. This file covers suites,
//! invariants and scores. Tests for runs are with the runner, those for faults in `profiles/tests/decisions`. Tests
//! for reports, commands and whole runs are with their subjects: `grep -rnE "fn (.*_)?g[0-9]+_" --include=*.rs`
//! lists all. 16 and 42 to 44 concern mutations; 37 and 38 concern replaying and importing incidents, which runs do
//! not support. 41 concerns recording. 56, 58 and 59 concern figures, code and tests without a counterpart in
//! Squall.

use squall_documents::Variables;

use crate::answer::AgentAnswer;
use crate::invariants::Active;
use crate::invariants::testing::{Outcome::*, judged_answer, reason};
use crate::invariants::{When, type_names};
use crate::runner::RunPart;
use crate::suite::{self, ContractPart, Suite};

const HEAD: &str = "agent: {endpoint: 'http://agent.test/'}\ngolden_prompts: [hello]\n";
const DEMANDS: &str = "invariants: [{type: completes}]\n";

fn parsed(text: &str) -> Result<Suite, Vec<String>> {
    let lookup = |name: &str| match name {
        "TOKEN" => Ok("hunter2".to_owned()),
        _ => Err(squall_documents::VariableError::NotSet),
    };
    suite::parse("suite.yaml", text, Variables::From(&lookup))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn suite_of(rest: &str) -> Suite {
    parsed(&format!("{HEAD}{rest}")).expect("valid")
}

/// A contract with these parts.
fn contract(invariants: &str, matrix: &str) -> String {
    format!("contract: {{name: c, invariants: {invariants}, chaos_matrix: {matrix}}}\n")
}

#[test]
fn g3_an_agent_that_fails_well_passes_what_is_not_about_failing() {
    let failed = AgentAnswer {
        text: "The search is down.".into(),
        error: Some("the agent answered with status 503".into()),
        ..AgentAnswer::default()
    };
    for (written, expected) in [
        ("{type: completes}", Fails),
        ("{type: output_not_empty}", Fails),
        ("{type: excludes_pii}", Holds),
        ("{type: latency, max_ms: 1000}", Holds),
        ("{type: contains, value: down}", Holds),
        ("{type: not_contains, value: sunny}", Holds),
    ] {
        assert_eq!(judged_answer(written, &failed), expected, "{written}");
    }
}

#[test]
fn g19_when_is_honoured() {
    let of = |tool, llm, network, context| Active {
        network,
        tool,
        tool_failures: tool,
        llm,
        context,
        ..Active::default()
    };
    let (clean, tool, llm) = (
        Active::default(),
        of(true, false, false, false),
        of(false, true, false, false),
    );
    let (network, context) = (of(false, false, true, false), of(false, false, false, true));
    let conversation = Active {
        conversation: true,
        ..clean
    };
    let any = vec![tool, llm, network, context, conversation];
    for (when, applies) in [
        (When::Always, [&[clean][..], &any].concat()),
        (When::NoChaos, vec![clean]),
        (When::AnyChaos, any.clone()),
        (When::ToolFaults, vec![tool]),
        (When::LlmFaults, vec![llm]),
        (When::NetworkFaults, vec![network]),
        (When::ContextAttacks, vec![context]),
        (When::ConversationFaults, vec![conversation]),
    ] {
        for active in [clean, tool, llm, network, context, conversation] {
            assert_eq!(
                when.applies(active),
                applies.contains(&active),
                "{when:?} {active:?}"
            );
        }
    }
    // Extended profiles count as part of the scenario.
    let extending =
        "[{name: flaky_network, extends: [flaky_network]}, {name: other, extends: [ours]}]";
    let suite =
        suite_of(&(DEMANDS.to_owned() + &contract("[{id: a, type: completes}]", extending)));
    let Some(ContractPart::Written(extending)) = &suite.contract else {
        panic!("a contract");
    };
    let active: Vec<_> = RunPart::contract(extending)
        .trials
        .iter()
        .map(|trial| trial.active)
        .collect();
    assert_eq!(active[0], network);
    assert!(
        active[1].tool && active[1].llm,
        "of a profile that is not known here any may be in it"
    );
    let negated = "{type: completes, when: tool_faults_active, negate: true}";
    assert_eq!(judged_answer(negated, &AgentAnswer::of("x")), NotApplicable);
}

/// Types that judge the answer, each with an answer that passes.
const HOLDING: &[(&str, &str)] = &[
    ("contains, value: sun", "sunny"),
    ("contains_any, values: [rain, sun]", "sunny"),
    ("not_contains, value: rain", "sunny"),
    ("regex, pattern: '^s'", "sunny"),
    ("excludes_pattern, patterns: ['^r']", "sunny"),
    ("latency, max_ms: 1000", "sunny"),
    ("valid_json", "{}"),
    ("json_schema, schema: {type: object}", "{}"),
    ("similarity, expected: sunny", "sunny"),
    ("behavior_unchanged, baseline: sunny", "sunny"),
    ("excludes_pii", "sunny"),
    ("refusal_check", "I cannot do that."),
    ("refusal", "I cannot do that."),
    ("output_not_empty", "sunny"),
    ("completes", "sunny"),
    ("max_length, max: 9", "sunny"),
];

#[test]
fn g20_every_type_can_be_negated_and_says_so() {
    for (written, answer) in HOLDING {
        let answer = AgentAnswer::of(*answer);
        let plain = format!("{{type: {written}}}");
        let negated = format!("{{type: {written}, negate: true}}");
        assert_eq!(judged_answer(&plain, &answer), Holds, "{written}");
        assert_eq!(judged_answer(&negated, &answer), Fails, "{written}");
        let told = reason(&negated, "hello", &answer.text);
        assert!(told.starts_with("negated: "), "{written}: {told}");
    }
    // The others use external services, traffic, repeats or conversations.
    let judged = HOLDING.iter().map(|(written, _)| written.split(',').next());
    let judged: Vec<_> = judged.flatten().collect();
    let others: Vec<_> = type_names()
        .take_while(|name| *name != "tool_called")
        .filter(|name| !judged.contains(name))
        .collect();
    assert_eq!(
        others,
        [
            "remembers",
            "consistent",
            "no_cross_session",
            "variance",
            "outliers",
            "llm_judge",
            "command"
        ]
    );
}
