//! Gaps in flakestorm that a judge must close, one test each, named after its number. This file covers suites,
//! invariants and scores. Tests for runs are with the runner, those for faults in `profiles/tests/decisions`. Tests
//! for reports, commands and whole runs are with their subjects: `grep -rnE "fn (.*_)?g[0-9]+_" --include=*.rs`
//! lists all. 16 and 42 to 44 concern mutations; 37 and 38 concern replaying and importing incidents, which runs do
//! not support. 41 concerns recording. 56, 58 and 59 concern figures, code and tests without a counterpart in
//! Squall.

use squall_documents::Variables;

use crate::answer::Answer;
use crate::invariants::Active;
use crate::invariants::testing::{
    Outcome, Outcome::*, invariant, judged_answer, judged_beside, reason,
};
use crate::invariants::{Severity, When, type_names};
use crate::prompt::Prompt;
use crate::runner::Part;
use crate::scores::Scoring;
use crate::suite::{self, ContractPart, Suite};

const HEAD: &str = "agent: {endpoint: 'http://agent.test/'}\ngolden_prompts: [hello]\n";
const DEMANDS: &str = "invariants: [{type: completes}]\n";

fn parsed(text: &str) -> Result<Suite, Vec<String>> {
    let lookup = |name: &str| match name {
        "TOKEN" => Ok("hunter2".to_owned()),
        _ => Err(std::env::VarError::NotPresent),
    };
    suite::parse("suite.yaml", text, Variables::From(&lookup))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn suite_of(rest: &str) -> Suite {
    parsed(&format!("{HEAD}{rest}")).expect("valid")
}

/// The errors of an invalid suite.
fn errors(rest: &str) -> String {
    parsed(&format!("{HEAD}{rest}"))
        .expect_err("errors")
        .join("\n")
}

/// A contract with these parts.
fn contract(invariants: &str, matrix: &str) -> String {
    format!("contract: {{name: c, invariants: {invariants}, chaos_matrix: {matrix}}}\n")
}

#[test]
fn g3_an_agent_that_fails_well_passes_what_is_not_about_failing() {
    let failed = Answer {
        text: "The search is down.".into(),
        error: Some("the agent answered with status 503".into()),
        ..Answer::default()
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
fn g6_a_scenario_stands_alone_whatever_chaos_the_suite_has() {
    let text = format!(
        "{DEMANDS}chaos: {{llm_faults: [{{mode: empty}}]}}\n{}",
        contract(
            "[{id: a, type: completes}]",
            "[{name: clean}, {name: down, tool_faults: [{tool: '*', mode: error}]}]"
        )
    );
    let suite = suite_of(&text);
    let Some(ContractPart::Written(contract)) = &suite.contract else {
        panic!("a contract");
    };
    let part = Part::contract(contract);
    let active: Vec<_> = part.trials.iter().map(|trial| trial.active).collect();
    let tool = Active {
        tool: true,
        tool_failures: true,
        ..Active::default()
    };
    assert_eq!(active, [Active::default(), tool]);
    assert_eq!(part.trials[0].rules, crate::reach::Rules::Nothing);
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
    for (when, applies) in [
        (When::Always, vec![clean, tool, llm, network, context]),
        (When::NoChaos, vec![clean]),
        (When::AnyChaos, vec![tool, llm, network, context]),
        (When::ToolFaults, vec![tool]),
        (When::LlmFaults, vec![llm]),
        (When::NetworkFaults, vec![network]),
        (When::ContextAttacks, vec![context]),
    ] {
        for active in [clean, tool, llm, network, context] {
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
    let active: Vec<_> = Part::contract(extending)
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
    assert_eq!(judged_answer(negated, &Answer::of("x")), NotApplicable);
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
        let answer = Answer::of(*answer);
        let plain = format!("{{type: {written}}}");
        let negated = format!("{{type: {written}, negate: true}}");
        assert_eq!(judged_answer(&plain, &answer), Holds, "{written}");
        assert_eq!(judged_answer(&negated, &answer), Fails, "{written}");
        let told = reason(&negated, "hello", &answer.text);
        assert!(told.starts_with("negated: "), "{written}: {told}");
    }
    // The others use external services or traffic.
    let judged = HOLDING.iter().map(|(written, _)| written.split(',').next());
    let judged: Vec<_> = judged.flatten().collect();
    let others: Vec<_> = type_names()
        .take_while(|name| *name != "tool_called")
        .filter(|name| !judged.contains(name))
        .collect();
    assert_eq!(others, ["llm_judge", "command"]);
}

#[test]
fn g21_excludes_pattern_takes_regular_expressions() {
    let digits = "{type: excludes_pattern, patterns: ['\\d{4}']}";
    assert_eq!(judged_answer(digits, &Answer::of("code 1234")), Fails);
    assert_eq!(judged_answer(digits, &Answer::of("code 12")), Holds);
}

#[test]
fn g23_an_id_stands_for_one_invariant() {
    let twice = "[{id: a, type: completes}, {id: a, type: output_not_empty}]";
    let told = errors(&contract(twice, "[{name: clean}]"));
    assert!(
        told.contains("an invariant `a` stands here already"),
        "{told}"
    );
    // Default ids are unique.
    let suite = suite_of("invariants: [{type: completes}, {type: completes}]");
    let ids: Vec<_> = suite.invariants.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["completes", "completes-2"]);
}

#[test]
fn g24_without_a_clean_answer_nothing_is_unchanged() {
    let unchanged = "{type: behavior_unchanged}";
    let nobody = Answer {
        error: Some("status 500".into()),
        ..Answer::default()
    };
    assert_eq!(judged_answer(unchanged, &Answer::of("sunny")), Errs);
    assert_eq!(judged_beside(unchanged, "sunny", &nobody), Errs);
    // An empty answer is not similar to anything.
    let silent = Answer::of("");
    assert_eq!(judged_beside(unchanged, "sunny", &silent), Fails);
    assert_eq!(
        judged_beside(unchanged, "sunny", &Answer::of("sunny")),
        Holds
    );
}

#[test]
fn g30_an_empty_matrix_and_an_empty_list_are_errors() {
    let told = errors(&contract("[{id: a, type: completes}]", "[]"));
    assert!(told.contains("the matrix is empty"), "{told}");
    let told = errors(&contract("[]", "[{name: clean}]"));
    assert!(told.contains("the list is empty"), "{told}");
    // Scenarios at the root belong to the contract.
    let suite = suite_of(
        "contract: {name: c, invariants: [{id: a, type: completes}]}\nchaos_matrix: [{name: clean}]",
    );
    let Some(ContractPart::Written(contract)) = &suite.contract else {
        panic!("a contract");
    };
    assert_eq!(contract.scenarios.len(), 1);
}

#[test]
fn g31_whatever_can_be_known_before_a_run_is_told() {
    let one = "[{id: a, type: completes}]";
    for (text, said) in [
        (
            contract(one, "[{name: s, tool_faults: [{tool: '*', mode: eror}]}]"),
            "`eror`",
        ),
        (
            contract("[{id: a, type: regex, pattern: '('}]", "[{name: s}]"),
            "regular expression",
        ),
        (
            contract("[{id: a, type: contain, value: x}]", "[{name: s}]"),
            "did you mean `contains`",
        ),
        (
            contract("[{id: a, type: completes, when: chaos}]", "[{name: s}]"),
            "unknown condition",
        ),
        (
            contract(one, "[{name: s}, {name: s}]"),
            "a scenario `s` stands here already",
        ),
        (
            contract("[{type: completes}]", "[{name: s}]"),
            "`id` is missing",
        ),
        (
            contract(
                one,
                "[{name: s, tool_faults: [{tool: '*', mode: slow, delay_ms: -5}]}]",
            ),
            "-5",
        ),
    ] {
        let told = errors(&text);
        assert!(told.contains(said), "{text}: {told}");
        assert!(told.starts_with("suite.yaml:"), "{told}");
    }
    let never = contract(
        "[{id: a, type: completes, when: llm_faults_active}]",
        "[{name: s}]",
    );
    let notes: Vec<_> = suite_of(&never)
        .notes
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        notes[0].contains("invariant `a` is never judged"),
        "{notes:?}"
    );
}

#[test]
fn g32_a_severity_is_one_of_four() {
    let told = errors("invariants: [{type: completes, severity: hgih}]");
    assert!(
        told.contains("unknown severity `hgih`, did you mean `high`?"),
        "{told}"
    );
    let weights = [
        Severity::Critical,
        Severity::High,
        Severity::Medium,
        Severity::Low,
    ];
    assert_eq!(weights.map(Severity::weight), [3, 2, 1, 1]);
}

#[test]
fn g55_a_secret_in_a_header_is_refused_with_the_line_to_write() {
    let agent = |header: &str| {
        let text = format!(
            "agent: {{endpoint: 'http://a.test/', headers: {{{header}}}}}\ngolden_prompts: [x]\n{DEMANDS}"
        );
        parsed(&text)
    };
    for (header, line) in [
        (
            "Authorization: Bearer abc",
            "write `Authorization: \"Bearer ${AGENT_AUTHORIZATION}\"`",
        ),
        (
            "x-api-key: abc",
            "write `x-api-key: \"${AGENT_X_API_KEY}\"`",
        ),
        ("Cookie: sid=1", "write `Cookie: \"${AGENT_COOKIE}\"`"),
    ] {
        let told = agent(header).expect_err("a secret").join("\n");
        assert!(told.contains(line) && !told.contains("abc"), "{told}");
    }
    for harmless in [
        "Authorization: 'Bearer ${TOKEN}'",
        "Authorization: Bearer $TOKEN",
        "X-Tenant: acme",
        "Idempotency-Key: abc",
    ] {
        assert!(agent(harmless).is_ok(), "{harmless}");
    }
    let suite = agent("Authorization: 'Bearer ${TOKEN}'").expect("valid");
    assert!(!format!("{suite:?}").contains("hunter2"));
}

#[test]
fn g57_scores_are_what_the_docs_say() {
    // Weights that do not sum to 1 are invalid, including all zeroes.
    for (weights, is_fine) in [
        ("mutation: 0, chaos: 0, contract: 0, replay: 0", false),
        ("mutation: 0.5", false),
        (
            "mutation: 0.2, chaos: 0.35, contract: 0.35, replay: 0.1",
            true,
        ),
        (
            "weights: {mutation: 1, chaos: 0, contract: 0, replay: 0}",
            true,
        ),
    ] {
        let read = parsed(&format!("{HEAD}{DEMANDS}scoring: {{{weights}}}\n"));
        assert_eq!(read.is_ok(), is_fine, "{weights}");
    }
    assert_eq!(suite_of(DEMANDS).scoring, Scoring::default());
}

#[test]
fn g62_a_prompt_may_be_a_conversation_and_demands_may_be_on_the_wire() {
    let text = format!(
        "agent: {{endpoint: 'http://a.test/'}}\ngolden_prompts: [[Hi, And then?]]\n{DEMANDS}"
    );
    let suite = parsed(&text).expect("valid");
    assert_eq!(suite.golden_prompts[0].turns(), ["Hi", "And then?"]);
    assert_ne!(suite.golden_prompts[0], Prompt::single("Hi"));
    for name in [
        "tool_called",
        "tool_order",
        "no_duplicate_side_effects",
        "max_cost",
        "max_tokens",
        "retries_bounded",
        "retries_transient",
        "backs_off",
    ] {
        assert!(type_names().any(|known| known == name), "{name}");
    }
    assert!(invariant("{type: backs_off}").on_wire);
}

#[test]
fn numbers_and_words_that_make_no_sense_are_refused() {
    for (written, said) in [
        ("{type: latency, max_ms: -1}", "whole number"),
        (
            "{type: similarity, expected: x, threshold: 2}",
            "from 0 to 1",
        ),
        (
            "{type: completes, sevrity: high}",
            "did you mean `severity`",
        ),
        ("{type: completes, max: 5}", "`max` belongs to type"),
    ] {
        let told = errors(&format!("invariants: [{written}]"));
        assert!(told.contains(said), "{told}");
    }
    // Zero is a value, not a missing one.
    let zero: Outcome = judged_answer(
        "{type: similarity, expected: x, threshold: 0}",
        &Answer::of("quite else"),
    );
    assert_eq!(zero, Holds);
}
