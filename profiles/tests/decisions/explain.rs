//! What a person is told: nearest misses, findings of `validate`, profiles that extend others.

use squall_documents::Variables;
use squall_profiles::facts::{Facts, Kind};
use squall_profiles::library::{Library, ProfileSource, RemoveError};
use squall_profiles::profile;
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;
use squall_profiles::verdict::VerdictOutcome;

use crate::scope::*;

#[test]
fn rules_that_failed_on_one_condition_say_on_which() {
    let scope = scope(
        "network_faults:
           - { id: elsewhere, mode: refuse, match_url: ['https://api.exmaple/v1/*', 'http://b/*'] }
           - { id: fits, mode: latency, delay_ms: 1 }
           - { id: two_off, mode: refuse, match_url: 'http://b/*', methods: PUT }
           - { id: method, mode: refuse, methods: [PUT, DELETE] }
           - { id: header, mode: refuse, headers: { x-team: a } }
           - { id: dialect, mode: refuse, dialect: openai-chat }
           - { id: body, mode: refuse, match_body: needle }
           - { id: tool, mode: refuse, tool: web_search }
           - { id: websocket, mode: half_open, websocket: {} }
tool_faults:
           - { id: named, mode: stale, tool: web_search }
           - { id: status, mode: truncated, status: 5xx }
           - { id: path, mode: empty, json: { $.a: 1 } }
llm_faults:
           - { id: kind, mode: timeout }",
    );
    let request = post("https://api.example/v1/search", "{}").tool("search");
    let misses = scope.snapshot().nearest_misses(&request.facts());
    let told: Vec<_> = misses
        .iter()
        .map(|miss| format!("{}: {}", miss.rule.id, miss.why))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_body_that_is_not_kept_is_the_miss_of_a_rule_that_only_depends_on_it() {
    let scope = scope(
        "tool_faults:
           - { id: body, mode: empty, match_body: needle }
           - { id: both, mode: empty, match_body: needle, json: { $.a: 1 } }
           - { id: elsewhere, mode: empty, match_body: needle, match_url: 'http://b/*' }",
    );
    let request = post("https://api.example/v1/search", "{}").tool("search");
    let facts = Facts {
        body: None,
        ..request.facts()
    };
    let misses = scope.snapshot().nearest_misses(&facts);
    let ids: Vec<_> = misses.iter().map(|miss| miss.rule.id.as_str()).collect();
    assert_eq!(ids, ["body", "elsewhere"]);
}

#[test]
fn a_result_that_is_not_there_is_told() {
    let scope = scope(
        "tool_faults:
           - { id: inside, mode: empty, at: model_input, tool: search }
context_attacks:
           - { id: injection, type: indirect_injection, tool: search }",
    );
    let told = |request: &Request| {
        let misses = scope.snapshot().nearest_misses(&request.facts());
        let told = misses
            .iter()
            .map(|miss| format!("{}: {}", miss.rule.id, miss.why));
        told.collect::<Vec<_>>()
    };
    let brings = Request {
        results: Some(vec!["time".to_owned()]),
        ..model_call("{}")
    };
    assert_eq!(
        told(&brings),
        ["inside", "injection"]
            .map(|id| format!("{id}: `tool: search` does not match new results of `time`"))
    );
    let unnamed = Request {
        results: Some(vec![String::new()]),
        ..model_call("{}")
    };
    assert_eq!(told(&unnamed), [""; 0], "it is not known that they miss");
    let verdicts = send(&scope, &unnamed).verdicts;
    let reasons: Vec<_> = verdicts
        .iter()
        .map(|verdict| match &verdict.outcome {
            VerdictOutcome::Bypassed(why) => why.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    let why = "the request has tool results whose tools are named neither in it nor in an earlier answer, so \
               it is not known whether the rule matches; `*` is every tool";
    assert_eq!(reasons, [why; 2]);
    assert_eq!(
        told(&model_call("{}")),
        ["inside", "injection"].map(|id| format!(
            "{id}: `tool: search` does not match a request without new tool results"
        ))
    );
    let of_kind =
        "it is a tunnel or an upgrade; `tool_faults` cover model calls with `at: model_input`";
    let other = get("https://x/").kind(Kind::Other);
    assert!(
        told(&other)
            .iter()
            .all(|miss| !miss.contains("inside") || miss.ends_with(of_kind))
    );
}

#[test]
fn the_nearest_urls_come_first_and_the_list_ends() {
    let rules: Vec<_> = (0..40)
        .map(|n| format!("{{ id: r{n}, mode: refuse, match_url: 'https://host{n}.example/*' }}"))
        .collect();
    let scope = scope(&format!("network_faults: [{}]", rules.join(",")));
    let request = get("https://host3.exampel/").kind(Kind::Other);
    let misses = scope.snapshot().nearest_misses(&request.facts());
    assert_eq!((misses.len(), &*misses[0].rule.id), (16, "r3"));
}

#[test]
fn validate_tells_what_is_surely_not_meant() {
    let library = Library::builtin();
    let config = ["http://search/*".to_owned()];
    let tools = ToolNames::new([("web_search", &config[..])]).unwrap();
    let cases = [
        "name: x\n",
        "tool_faults:\n  - { mode: error, probability: 0 }\n",
        "tool_faults:\n  - { mode: error, limit: 0 }\n  - { mode: slow }\n",
        "tool_faults:\n  - { mode: error, calls: [1, 2], after_calls: 2 }\n  - { mode: slow }\n",
        "tool_faults:\n  - { mode: slow, window: { for: 0s } }\n  - { mode: slow }\n",
        "tool_faults:\n  - { mode: error, match_url: 'api.example/*' }\n  - { mode: slow }\n",
        "tool_faults:\n  - { mode: error, tool: web_serach }\n  - { mode: slow, tool: web_search }\n",
        "tool_faults:\n  - { mode: slow, model: 'gpt*' }\n  - { mode: slow }\n",
        "llm_faults:\n  - { mode: timeout, tool: x }\n  - { mode: overloaded }\n",
        "tool_faults:\n  - { id: a, mode: error }\n  - { id: b, mode: empty }\n  - { mode: slow }\n",
        "tool_faults:\n  - { id: a, mode: error, match_url: 'http://a/*' }\n  - { id: b, mode: stale, match_url: 'http://a/x/*', methods: GET }\n",
        "tool_faults:\n  - { id: a, mode: error, match_url: 'http://a/*', probability: 0.5 }\n  - { id: b, mode: stale, match_url: 'http://a/x/*' }\n",
        "network_faults:\n  - { id: a, mode: refuse }\nllm_faults:\n  - { id: b, mode: slow_stream }\n",
        "extends: api_outage\ntool_faults:\n  - { id: mine, mode: malformed, tool: '*' }\n",
        "llm_faults:\n  - { id: down, mode: overloaded }\ncontext_attacks: { overflow: { id: filler } }\n",
        "context_attacks: { overflow: { tool: search }, indirect_injection: { tool: search } }\n",
        "tool_faults:\n  - { id: wire, mode: error }\n  - { mode: empty, at: model_input, tool: search, model: 'gpt*' }\n",
        "llm_faults:\n  - { mode: stream_error, stream: false }\n  - { mode: stream_error }\n",
        "llm_faults:\n  - { mode: malformed_tool_call, stream: false }\n  - { mode: json_for_stream, stream: true }\n",
        "llm_faults:\n  - { mode: wrong_tool_arguments, tool: get_weather }\n  - { mode: unknown_tool_call, tool: 'mail_*' }\n",
        "extends: api_outge\n",
        "extends: api_outage\ntool_faults:\n  - { mode: slow, armed_by: { rule: nobody } }\n",
    ];
    let told = cases.map(|text| {
        let profile = profile::parse("chaos.yaml", text).unwrap();
        let findings = validate(&profile, &library, &tools);
        let findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
        format!("{text:?}\n{}", findings.join("\n"))
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn a_profile_puts_its_own_rules_before_those_it_extends() {
    let library = Library::default()
        .with_file(
            "base.yaml",
            "tool_faults: [{ id: a, mode: error }, { id: b, mode: empty }]",
            Variables::Refused,
        )
        .and_then(|library| {
            library.with_file(
                "mid.yaml",
                "extends: base\nnetwork_faults: [{ id: n, mode: refuse }]",
                Variables::Refused,
            )
        })
        .and_then(|library| {
            library.with_file(
                "top.json",
                r#"{"extends": ["mid", "base"], "tool_faults": [{"id": "b", "mode": "stale"}]}"#,
                Variables::Refused,
            )
        })
        .unwrap();
    let set = library.rule_set("top", &ToolNames::default()).unwrap();
    let rules: Vec<_> = set
        .rules()
        .iter()
        .map(|r| format!("{}/{} {}", r.profile, r.id, r.mode()))
        .collect();
    assert_eq!(rules, ["mid/n refuse", "top/b stale", "base/a error"]);
}

#[test]
fn two_files_cannot_have_a_profile_of_one_name() {
    let text = "name: same\ntool_faults: [{ mode: error }]";
    let library = Library::builtin()
        .with_file("a.yaml", text, Variables::Refused)
        .unwrap();
    let errors = library
        .with_file("b.yaml", text, Variables::Refused)
        .unwrap_err();
    let said = errors[0].to_string();
    assert!(said.starts_with("b.yaml"), "{said}");
    assert!(
        said.contains("a.yaml has a profile called `same` too"),
        "{said}"
    );
    // A new version of a file, and a file in place of a built-in profile, are no such thing.
    let again = library.with_file("a.yaml", text, Variables::Refused);
    let builtin = again.unwrap().with_file(
        "brownout.yaml",
        "tool_faults: [{ mode: error }]",
        Variables::Refused,
    );
    assert!(builtin.is_ok(), "{builtin:?}");
}

#[test]
fn what_is_wrong_between_profiles_is_told() {
    let library = Library::default()
        .with_file("a.yaml", "extends: b\n", Variables::Refused)
        .and_then(|library| library.with_file("b.yaml", "extends: c\n", Variables::Refused))
        .and_then(|library| {
            library.with_file("c.yaml", "name: c\nextends:\n  - a\n", Variables::Refused)
        })
        .and_then(|library| library.with_file("d.yaml", "extends: aa\n", Variables::Refused))
        .unwrap();
    let told: Vec<_> = library.check().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "c.yaml:3:5: `extends` goes round in a circle: a → b → c → a",
            "a.yaml:1:10: `extends` goes round in a circle: b → c → a → b",
            "b.yaml:1:10: `extends` goes round in a circle: c → a → b → c",
            "d.yaml:1:10: unknown profile `aa` in `extends`",
        ]
    );
    assert!(library.rule_set("a", &ToolNames::default()).is_err());
    let unknown = library.rule_set("bb", &ToolNames::default()).unwrap_err();
    assert_eq!(unknown.to_string(), "profiles: unknown profile `bb`");
}

#[test]
fn the_api_holds_over_files_and_files_over_what_is_built_in() {
    let text =
        |description: &str| format!("description: {description}\ntool_faults: [{{ mode: slow }}]");
    let put = |library: &Library, name: &str| {
        library.with_api(name, profile::parse(name, &text("api")).unwrap())
    };
    let builtin = Library::builtin();
    let file = builtin
        .with_file("api_outage.yaml", &text("file"), Variables::Refused)
        .unwrap();
    let api = put(&file, "api_outage").unwrap();
    for (library, source) in [
        (&builtin, ProfileSource::Builtin),
        (&file, ProfileSource::File),
        (&api, ProfileSource::Api),
    ] {
        assert_eq!(library.get("api_outage").unwrap().0, source);
        assert_eq!(library.list().len(), 12);
    }
    assert_eq!(
        api.without_api("api_outage")
            .unwrap()
            .get("api_outage")
            .unwrap()
            .0,
        ProfileSource::File
    );
    assert_eq!(
        file.without_files().get("api_outage").unwrap().0,
        ProfileSource::Builtin
    );
    for (library, expected) in [(&builtin, "built in"), (&file, "from a file")] {
        let error = library.without_api("api_outage").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("profile `api_outage` is {expected} and cannot be deleted")
        );
    }
    assert_eq!(
        builtin.without_api("x").unwrap_err(),
        RemoveError::Unknown("x".to_owned())
    );
    for bad in ["none", "Upper", "", "a b", &"x".repeat(65)] {
        assert!(put(&builtin, bad).is_err(), "{bad}");
    }
    let misnamed = profile::parse("x", "name: y\ntool_faults: [{ mode: slow }]").unwrap();
    assert!(builtin.with_api("x", misnamed).is_err());
    assert!(
        builtin
            .rule_set("none", &ToolNames::default())
            .unwrap()
            .rules()
            .is_empty()
    );
}
