mod schema;

use squall_documents::VariableError;

use proptest::prelude::*;
use squall_documents::Variables;

use super::*;
use crate::report::certificate::CertificateFormat;

/// A valid suite, except for the part that a test case replaces.
const AGENT: &str = "agent: {endpoint: 'http://a.test/'}\n";
const PROMPTS: &str = "golden_prompts: [hello]\n";
const DEMANDS: &str = "invariants: [{type: completes}]\n";

fn table(name: &str) -> Result<String, VariableError> {
    match name {
        "TOKEN" => Ok("hunter2".to_owned()),
        "NUMBER" => Ok("2500".to_owned()),
        _ => Err(VariableError::NotSet),
    }
}

fn parsed(text: &str) -> Result<Suite, Vec<SuiteError>> {
    parse("suite.yaml", text, Variables::From(&table))
}

fn errors(text: &str) -> Vec<String> {
    let errors = parsed(text).expect_err("errors");
    errors.iter().map(ToString::to_string).collect()
}

const AGENTS: &[&str] = &[
    "agent: {}",
    "agent: http://a.test/",
    "agent: {endpoint: 'a.test/invoke'}",
    "agent: {endpoint: 'http://a.test:99999/'}",
    "agent: {endpoint: 'http://a.test/', type: htpp}",
    "agent: {endpoint: 'http://a.test/', timeout: 30}",
    "agent: {endpoint: 'http://a.test/', timeout: '30000'}",
    "agent: {endpoint: 'http://a.test/', timeout: soon}",
    "agent: {endpoint: 'http://a.test/', metod: GET}",
    "agent: {endpoint: 'http://a.test/', method: FETCH}",
    "agent: {endpoint: 'http://a.test/', response_path: '$.choices['}",
    "agent: {endpoint: 'http://a.test/', command: [x]}",
    "agent: {endpoint: 'http://a.test/', headers: {Authorization: Bearer abcdef}}",
    "agent: {endpoint: 'http://a.test/', headers: {X-Api-Key: abcdef}}",
    "agent: {endpoint: 'http://a.test/', headers: {'bad name': x}}",
    "agent: {endpoint: 'http://a.test/', reset_endpoint: '/reset'}",
    "agent: {endpoint: 'http://a.test/', reset_function: reset}",
    "agent: {endpoint: 'http://a.test/', reset_function: 'a:b', reset_command: x}",
    "agent: {endpoint: 'http://a.test/', start: {command: [x]}}",
    "agent: {endpoint: '${NOPE}/x'}",
    "agent: {type: python, endpoint: my_agent.py}",
    "agent: {type: command, endpoint: 'http://a.test/'}",
    "agent: {type: openai, endpoint: 'http://a.test/v1'}",
];

#[test]
fn a_profile_that_only_the_daemon_has_is_no_doubt() {
    let contract = "contract: {name: c, invariants: [{id: a, type: completes}], \
                    chaos_matrix: [{name: b, extends: [ours]}]}\n";
    let suite = parsed(&format!("{AGENT}{PROMPTS}{DEMANDS}{contract}")).expect("valid");
    assert!(suite.notes.is_empty(), "{:?}", suite.notes);
}

#[test]
fn a_header_that_says_how_many_is_no_secret() {
    let agent = "agent: {endpoint: 'http://a.test/', headers: {X-Token-Count: '5'}}\n";
    parsed(&format!("{agent}{PROMPTS}{DEMANDS}")).expect("valid");
}

#[test]
fn a_secret_in_any_header_is_told_with_the_line_to_write() {
    for (header, expected) in [
        (
            "X-Foo: sk-proj-abcdefghijklmnopqrstuvwxyz0123",
            "suite.yaml:1:54: the header `X-Foo` holds a secret in clear; write `X-Foo: \"${AGENT_X_FOO}\"` and set \
             the variable",
        ),
        (
            "Authorization: 'Bearer ${TOK:-sk-abc123}'",
            "suite.yaml:1:62: the header `Authorization` holds a secret in clear; write `Authorization: \"Bearer \
             ${AGENT_AUTHORIZATION}\"` and set the variable",
        ),
    ] {
        let agent = format!("agent: {{endpoint: 'http://a.test/', headers: {{{header}}}}}\n");
        assert_eq!(errors(&format!("{agent}{PROMPTS}{DEMANDS}")), [expected]);
    }
}

#[test]
fn of_both_of_flakestorms_resets_the_endpoint_is_asked() {
    let agent = "agent: {endpoint: 'http://a.test/', reset_endpoint: 'http://a.test/reset', reset_function: 'a:b'}\n";
    let suite = parsed(&format!("{agent}{PROMPTS}{DEMANDS}")).expect("valid");
    let reset = agent::Reset::Endpoint("http://a.test/reset".to_owned());
    assert_eq!(suite.agent.reset, Some(reset));
    assert_eq!(
        suite.notes[0].to_string(),
        "suite.yaml:1:76: `reset_function` has no effect when `reset_endpoint` is set"
    );
}

#[test]
fn words_of_old_yaml_are_names_and_where_a_flag_belongs_flags() {
    let suite = parsed(&format!(
        "{AGENT}golden_prompts: [y, no]\n\
         invariants: [{{id: n, type: contains, value: off, negate: yes}}]\n\
         contract: {{name: on, invariants: [{{id: y, type: completes}}], chaos_matrix: [{{name: y}}]}}\n"
    ))
    .expect("valid");
    let turns: Vec<_> = suite
        .golden_prompts
        .iter()
        .flat_map(Prompt::turns)
        .collect();
    assert_eq!(turns, ["y", "no"]);
    assert_eq!(suite.invariants[0].id, "n");
    assert!(suite.invariants[0].negate);
    let Some(ContractPart::Written(contract)) = &suite.contract else {
        panic!("{:?}", suite.contract)
    };
    assert_eq!(contract.name, "on");
    assert_eq!(contract.invariants[0].id, "y");
    assert_eq!(contract.scenarios[0].name, "y");
}

const OTHER_DEMANDS: &[&str] = &[
    "invariants: [{type: no_duplicate_side_effects, methods: [POSTT]}]",
    "invariants: []",
    "invariants: {type: completes}",
    "invariants: [completes]",
    "invariants: [{value: x}]",
    "invariants: [{type: contain, value: x}]",
    "invariants: [{type: contains}]",
    "invariants: [{type: contains, value: '  '}]",
    "invariants: [{type: contains, values: [a]}]",
    "invariants: [{type: contains, value: a, max: 5}]",
    "invariants: [{type: contains, value: a, tpye: x}]",
    "invariants: [{type: regex, pattern: '(a'}]",
    "invariants: [{type: latency, max_ms: 0}]",
    "invariants: [{type: latency, max_ms: 1.5}]",
    "invariants: [{type: similarity}]",
    "invariants: [{type: similarity, expected: a, threshold: 80}]",
    "invariants: [{type: completes, severity: hihg}]",
    "invariants: [{type: completes, when: tools_faults_active}]",
    "invariants: [{type: completes, negate: maybe}]",
    "invariants: [{type: completes, id: a}, {type: completes, id: a}]",
    "invariants: [{type: excludes_pattern, patterns: []}]",
    "invariants: [{type: json_schema, schema: {type: strng}}]",
    "invariants: [{type: llm_judge, rubric: polite}]",
    "invariants: [{type: command}]",
    "embeddings: {name: minilm, base_url: 'http://a.test/v1', api_key: sk-abcdefgh12}",
    "embeddings: {}",
];

const BLOCKS: &[&str] = &[
    "golden_prompt: [x]",
    "golden_prompts: []",
    "golden_prompts: ['']",
    "golden_prompts: [[]]",
    "golden_prompts: [{turn: x}]",
    "model: {provider: opnai}",
    "model: {provider: openai, name: gpt-4o}",
    "model: {provider: openai, name: gpt-4o, api_key: sk-proj-abcdef123456}",
    "model: {provider: anthropic, api_key: '${TOKEN}'}",
    "model: {temperature: 3}",
    "mutations: {count: 0}",
    "mutations: {types: []}",
    "mutations: {types: [paraphras]}",
    "mutations: {types: [custom]}",
    "mutations: {weights: {noise: -1}}",
    "mutations: {custom_templates: {a: no place}}",
    "scoring: {mutation: 0.5}",
    "scoring: {mutation: 0, chaos: 0, contract: 0, replay: 0}",
    "scoring: {weights: {mutation: 0.2}, chaos: 0.35}",
    "output: {format: pdf}",
    "advanced: {concurrency: 0}",
    "advanced: {seed: -1}",
    "advanced: {concurrancy: 1}",
    "tools: {search: 'http://x/*'}",
    "tools: {search: {match_url: '{'}}",
    "prices: {gpt: {input: 1}}",
    "chaos: []",
    "chaos: {tool_fault: []}",
    "chaos: {tool_faults: [{tool: '*', mode: eror}]}",
    "chaos:\n  llm_faults:\n    - mode: rate_limit\n    - {mode: timeout, delay_ms: -5}",
    "chaos: {tool_faults: [{tool: '*', mode: slow, retry_after: 5}]}",
    "contract: {}",
    "contract: {name: x, invariants: [{type: completes}], chaos_matrix: [{name: a}]}",
    "contract: {name: x, invariants: [{id: a, type: completes}], chaos_matrix: []}",
    "contract: {name: x, invariants: [{id: a, type: completes}]}",
    "contract: {name: x, invariants: [{id: a, type: completes}], chaos_matrix: [{name: a}, {name: a}]}",
    "contract: {name: x, invariants: [{id: a, type: completes}], chaos_matrix: [{tool_faults: []}]}",
    "contract: {name: x, invariants: [{id: a, type: completes}], chaos_matrix: [{name: a, tool_fault: []}]}",
    "contract:\n  name: x\n  invariants: [{id: a, type: completes}]\n  chaos_matrix:\n    - name: a\n      tool_faults:\n        - {tool: '*', mode: error, error_code: 99999}",
    "contract: {name: x, isolation: cel, invariants: [{id: a, type: completes}], chaos_matrix: [{name: a}]}",
    "chaos_matrix: [{name: a}]",
    "replays: {sessions: [{id: a}]}",
    "replays: {sessions: [{id: a, input: x}, {id: a, input: z}]}",
    "replays: {sessions: [{id: a, input: x, tool_responses: [{tool: t, status: 42}]}]}",
    "replays: {sessions: [{id: a, input: x, llm_responses: [{content: hi}]}]}",
    "replays: {sessions: [{id: a, input: ' '}]}",
    "replays: {sessions: [{id: a, input: x, on_miss: '${TOKEN}'}]}",
    "replays: {sources: [{type: langsmth, project: x}]}",
    "replays: {sources: [{type: langsmith}]}",
    "replays: {sources: [{type: langsmith, project: x, filter: {date_range: last_week}}]}",
    "chaos_profile: x",
    "- a",
    "agent: {",
];

/// Each case has one error in one block.
fn cases() -> Vec<String> {
    let agents = AGENTS
        .iter()
        .map(|case| format!("{case}\n{PROMPTS}{DEMANDS}"));
    let demands = OTHER_DEMANDS
        .iter()
        .map(|case| format!("{AGENT}{PROMPTS}{case}\n"));
    let blocks = BLOCKS.iter().map(|case| {
        let prompts = if case.starts_with("golden_prompt") {
            ""
        } else {
            PROMPTS
        };
        format!("{AGENT}{prompts}{DEMANDS}{case}\n")
    });
    agents.chain(demands).chain(blocks).collect()
}

#[test]
fn what_makes_no_sense_is_told_where_it_stands() {
    let told: Vec<_> = cases()
        .iter()
        .map(|case| {
            let own = case.lines().filter(|line| {
                ![AGENT, PROMPTS, DEMANDS]
                    .iter()
                    .any(|other| other.trim() == *line)
            });
            let own: Vec<_> = own.collect();
            format!("{}\n  {}", own.join("\n"), errors(case).join("\n  "))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "agent: {endpoint: x, typ: http}\ngolden_prompts: []\ninvariants:\n  - {type: nope}\n  - {type: latency}\n";
    let lines: Vec<_> = parsed(text)
        .expect_err("errors")
        .iter()
        .map(|error| (error.position.line, error.pointer.clone()))
        .collect();
    let expected = [
        (1, "/agent/endpoint"),
        (1, "/agent/typ"),
        (2, "/golden_prompts"),
        (4, "/invariants/0/type"),
        (5, "/invariants/1"),
    ];
    let expected = expected.map(|(line, pointer)| (line, pointer.to_owned()));
    assert_eq!(lines, expected);
}

#[test]
fn a_rule_that_another_one_shadows_is_told_with_both_lines() {
    let shadowing = "chaos_matrix:
  - name: x
    tool_faults:
      - { tool: '*', mode: error }
      - { tool: '*', mode: empty }
";
    let contract = format!("name: c\ninvariants: [{{id: a, type: completes}}]\n{shadowing}");
    let within = contract.replace('\n', "\n  ");
    let suite = format!("{AGENT}{PROMPTS}contract:\n  {}\n", within.trim_end());
    let told = |notes: Vec<SuiteError>| -> Vec<String> {
        let shadowed = notes.iter().map(ToString::to_string);
        shadowed
            .filter(|note| note.contains("has no effect"))
            .collect()
    };
    let own = told(parsed(&suite).expect("valid").notes);
    assert!(
        own.len() == 1 && own[0].starts_with("suite.yaml:10:11: ") && own[0].contains("on line 9 "),
        "{own:#?}"
    );
    let extended = suite.replace("- { tool: '*', mode: empty }", "extends: hostile_tools");
    let extended = told(
        parsed(&extended.replace("        extends", "      extends"))
            .expect("valid")
            .notes,
    );
    assert!(
        !extended.is_empty()
            && extended.iter().all(|note| note
                .starts_with("suite.yaml:10:16: of what is extended here, hostile_tools.yaml:")
                && note.contains(" in suite.yaml:9 ")),
        "{extended:#?}"
    );
    let open = |path: &str, _: &str| Ok((path.to_owned(), contract.clone()));
    let suite = format!("{AGENT}{PROMPTS}contract: c.yaml\n");
    let read = read_local("suite.yaml", &suite, Variables::From(&table), &open, &[]);
    let named = told(read.expect("valid").suite.notes);
    assert!(
        named.len() == 1 && named[0].starts_with("c.yaml:7:9: ") && named[0].contains("on line 6 "),
        "{named:#?}"
    );
}

#[test]
fn a_slip_in_a_scenario_or_a_file_hides_nothing_else() {
    let open = |path: &str, _: &str| match path {
        "c.yaml" => Ok((
            path.to_owned(),
            "name: c
invariants: [{id: a, type: regx}]
chaos_matrix:
  - name: x
    tool_faults:
      - { tool: '*', mode: errr }
      - { tool: '*', mode: error, probabilty: 1, error_code: 9 }
"
            .to_owned(),
        )),
        _ => Err(format!("`{path}` cannot be read: there is none")),
    };
    let suite = "agent: {endpoint: 'http://a.test/', tiemout: 5}
golden_prompts: [hello]
contract: c.yaml
invariants: [{type: json_schema, schema: gone.json}]
";
    let errors = read_local("suite.yaml", suite, Variables::From(&table), &open, &[]);
    let errors = errors.expect_err("errors");
    let mut places: Vec<_> = errors
        .iter()
        .map(|error| format!("{}:{} {}", error.file, error.position.line, error.pointer))
        .collect();
    places.sort();
    assert_eq!(
        places,
        [
            "c.yaml:2 /contract/invariants/0/type",
            "c.yaml:6 /contract/chaos_matrix/0/tool_faults/0/mode",
            "c.yaml:7 /contract/chaos_matrix/0/tool_faults/1/error_code",
            "c.yaml:7 /contract/chaos_matrix/0/tool_faults/1/probabilty",
            "suite.yaml:1 /agent/tiemout",
            "suite.yaml:4 ",
        ],
        "{errors:#?}"
    );
}

#[test]
fn no_secret_is_told() {
    for case in [
        "agent: {endpoint: '${TOKEN}'}",
        "agent: {type: '${TOKEN}', endpoint: 'http://a.test/'}",
        "agent: {endpoint: 'http://a.test/', timeout: '${TOKEN}'}",
        "agent: {endpoint: 'http://a.test/', method: '${TOKEN}'}",
        "agent: {type: python, endpoint: '${TOKEN}'}",
        "agent: {endpoint: 'http://a.test/', response_path: '$.${TOKEN}['}",
        "agent: {endpoint: 'http://a.test/', headers: {X: \"${TOKEN}\\n\"}}",
    ] {
        for error in errors(&format!("{case}\n{PROMPTS}{DEMANDS}")) {
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
    let literal = format!(
        "{AGENT}{PROMPTS}{DEMANDS}model: {{provider: openai, name: x, api_key: sk-literal-key}}"
    );
    assert!(!errors(&literal)[0].contains("literal"));
    for demand in [
        "{type: '${TOKEN}'}",
        "{type: regex, pattern: '(${TOKEN}'}",
        "{type: completes, when: '${TOKEN}'}",
    ] {
        for error in errors(&format!("{AGENT}{PROMPTS}invariants: [{demand}]")) {
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}

#[test]
fn a_variable_may_stand_for_a_number() {
    let text = format!("{AGENT}{PROMPTS}invariants: [{{type: latency, max_ms: '${{NUMBER}}'}}]");
    assert!(parsed(&text).is_ok());
}

#[test]
fn what_is_odd_is_noted_and_allowed() {
    for (case, expected) in [
        (
            format!("agent: {{type: python, endpoint: 'm:a', method: GET}}\n{PROMPTS}{DEMANDS}"),
            "suite.yaml:1:40: `method` does nothing for an agent of type `python`",
        ),
        (
            format!("{AGENT}{PROMPTS}invariants: [{{type: completes, when: llm_faults_active}}]"),
            "suite.yaml:3:14: invariant `completes` is never judged: no scenario fits `when: llm_faults_active`",
        ),
    ] {
        let suite = parsed(&case).expect("allowed");
        let notes: Vec<_> = suite.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes, [expected]);
    }
    let never = format!(
        "{AGENT}{PROMPTS}{DEMANDS}chaos: {{tool_faults: [{{match_url: nowhere, mode: slow}}]}}"
    );
    let suite = parsed(&never).expect("allowed");
    let mut notes = suite.notes.iter().map(ToString::to_string);
    assert!(
        notes.any(|note| note.starts_with("suite.yaml:4:23: ")),
        "{:?}",
        suite.notes
    );
}

#[test]
fn a_scenarios_rules_keep_what_their_variables_stood_for_apart() {
    let text = format!(
        "{AGENT}{PROMPTS}{DEMANDS}chaos: {{tool_faults: [{{tool: '*', mode: malicious_response, payload: 'x ${{TOKEN}}'}}]}}"
    );
    let suite = parsed(&text).expect("valid");
    let chaos = suite.chaos.expect("chaos");
    let (text, expanded) = chaos.version();
    assert!(text.contains("${TOKEN}") && !text.contains("hunter2"));
    assert_eq!(expanded.iter().collect::<Vec<_>>(), [("TOKEN", "hunter2")]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_told_what_is_wrong(text in r"(agent|type|invariants|[a-z:\-{}\[\],' \n0-9$]){0,60}") {
        if let Err(errors) = parsed(&text) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(!error.message.is_empty());
                prop_assert!(error.to_string().starts_with("suite.yaml"));
            }
        }
    }
}

#[test]
fn what_no_run_could_make_good_is_told_before_one() {
    let notes = |text: &str| -> Vec<String> {
        let suite = parsed(text).expect("valid");
        suite.notes.iter().map(ToString::to_string).collect()
    };
    let head = format!("{AGENT}{PROMPTS}");
    let agent = |template: &str| {
        format!(
            "agent: {{endpoint: 'http://a.test/', request_template: '{template}'}}\n{PROMPTS}{DEMANDS}"
        )
    };
    for (text, said) in [
        (
            format!("{head}invariants: [{{type: max_calls, tool: nosuch, max: 2}}]"),
            "invariant `max_calls` is about calls of `nosuch`, and only MCP tools are called so",
        ),
        (
            format!("{head}{DEMANDS}tools: {{a: {{match_url: ['http://a.test/*', nourl]}}}}"),
            "suite.yaml:4:44: `nourl` matches no URL; `match_url` covers the whole URL without a fragment: begin it \
             with `https://` or `*`",
        ),
        (
            format!("{head}{DEMANDS}advanced: {{skip_rules: [x]}}"),
            "`skip_rules` changes nothing",
        ),
        (
            agent(r#"{"q": "{prompt}", }"#),
            "looks like JSON and is none",
        ),
        (agent(r#"{"q": "hello"}"#), "no place for the prompt"),
        (
            agent(r#"{"q": "{city}"}"#).replace("[hello]", "['City: Kiel', hello]"),
            "1 of 2 prompts have no line `city: …`, which the template has a place for, and are not judged: `hello` \
             the first",
        ),
    ] {
        let told = notes(&text).join("\n");
        assert!(told.contains(said), "{text}: {told}");
    }
    for fine in [
        format!(
            "{head}tools: {{t: {{match_url: 'http://t.test/*'}}}}\ninvariants: [{{type: max_calls, tool: t, max: 2}}]"
        ),
        format!(
            "{head}invariants: [{{type: tool_called, tool: inside}}, {{type: max_calls, tool: '*', max: 2}}]"
        ),
        agent(r#"{"q": "{prompt}"}"#),
    ] {
        assert_eq!(notes(&fine), [""; 0], "{fine}");
    }
    let told = errors(&agent(r#"{"q": "{promt}"}"#)).join("\n");
    assert!(told.contains("a placeholder `{promt}`"), "{told}");
}

#[test]
fn a_suite_says_what_its_certificates_say() {
    let kept = "what variables stand for is not kept with runs; name the tester with `squall certificate --tester`";
    for (block, expected, notes) in [
        (
            "{tester_name: 'Quality, Example Ltd'}",
            (Some("Quality, Example Ltd"), None, None),
            vec![],
        ),
        ("{pass_threshold: 80}", (None, Some(80.0), None), vec![]),
        ("{pass_threshold: 0.8}", (None, Some(80.0), None), vec![]),
        (
            "{output_format: PDF, tester_name: Ada}",
            (Some("Ada"), None, Some(CertificateFormat::Pdf)),
            vec![],
        ),
        (
            "{tester_name: 'Ada ${TOKEN}'}",
            (None, None, None),
            vec![kept],
        ),
    ] {
        let suite = parsed(&format!("{AGENT}{PROMPTS}{DEMANDS}certificate: {block}\n"));
        let suite = suite.expect("valid");
        let said = &suite.certificate;
        let found = (said.tester.as_deref(), said.pass_threshold, said.format);
        assert_eq!(found, expected, "{block}");
        assert_eq!(suite.notes.len(), notes.len(), "{:?}", suite.notes);
        for (note, part) in suite.notes.iter().zip(notes) {
            assert!(note.to_string().contains(part), "{note}");
        }
    }
    let told = errors(&format!(
        "{AGENT}{PROMPTS}{DEMANDS}certificate: {{tester_name: ' '}}\n"
    ));
    assert_eq!(told, ["suite.yaml:4:28: this is empty; write a text"]);
    let unknown = format!("{AGENT}{PROMPTS}{DEMANDS}certificate: {{output_format: docx}}\n");
    let told = errors(&unknown).join("\n");
    assert!(told.contains("unknown format `docx`"), "{told}");
}
