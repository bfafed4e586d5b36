//! What a rule matches.

use std::time::Duration;

use http::Method;
use squall_documents::DocumentLimits;
use squall_profiles::facts::Kind;
use squall_profiles::pattern::{self, Searched};
use squall_profiles::tools::ToolNames;

use crate::scope::*;

/// Checks a rule of `tool_faults` against a request.
fn check(rule: &str, request: &Request, expected: bool) {
    let scope = scope(&format!("tool_faults: [{rule}]"));
    let decision = send(&scope, request);
    assert_eq!(
        !fired(&decision).is_empty(),
        expected,
        "{rule} on {request:?}"
    );
}

#[test]
fn every_condition_on_the_head_must_hold() {
    let order = post("https://shop.example/orders", "");
    let named = |name: &'static str| get("http://x/").header("x-team", name);
    for (request, matching, others) in [
        (
            get("https://x/"),
            &["{ mode: slow }", "{ mode: slow, match_url: 'https://*' }"][..],
            &["{ mode: slow, match_url: 'http://*' }"][..],
        ),
        (
            get("http://b/1"),
            &[
                "{ mode: slow, match_url: ['http://a/*', 'http://b/*'] }",
                "{ mode: slow, match_url: 'http://{a,b}/*' }",
            ],
            &["{ mode: slow, match_url: 'http://{a,c}/*' }"],
        ),
        (
            order,
            &["{ mode: slow, methods: [post, PUT] }"],
            &[
                "{ mode: slow, methods: PUT }",
                "{ mode: slow, headers: { X-Team: '*' } }",
            ],
        ),
        (
            named("ab"),
            &["{ mode: slow, headers: { X-Team: 'a*' } }"],
            &["{ mode: slow, headers: { X-Team: 'b*' } }"],
        ),
    ] {
        for rule in matching {
            check(rule, &request, true);
        }
        for rule in others {
            check(rule, &request, false);
        }
    }
}

#[test]
fn every_condition_on_the_body_must_hold() {
    let order = r#"{"item": {"id": 7}, "note": "gift"}"#;
    for (request, matching, others) in [
        (
            post("https://shop.example/orders", order),
            &[
                "{ mode: slow, body: 'g.ft' }",
                "{ mode: error, match_body: gift }",
                "{ mode: slow, json: { '$.item.id': 7 } }",
                "{ mode: slow, json: { '$.item.id': 7.0 } }",
                "{ mode: slow, json: { '$..id': 7, '$.note': gift } }",
            ][..],
            &[
                "{ mode: slow, body: '^gift' }",
                "{ mode: slow, json: { '$.item.id': 8 } }",
                "{ mode: slow, json: { '$..id': 7, '$.note': none } }",
            ][..],
        ),
        (
            post("http://x/", "not json"),
            &["{ mode: error, body: gift }"],
            &[
                "{ mode: slow, json: { '$.a': 1 } }",
                "{ mode: slow, match_url: '*', model: '*' }",
            ],
        ),
        (
            model_call("{}"),
            &[
                "{ mode: slow, match_url: '*', dialect: openai-chat }",
                "{ mode: slow, match_url: '*', model: 'gpt-4*' }",
                "{ mode: slow, match_url: '*', stream: false }",
            ],
            &[
                "{ mode: slow, match_url: '*', dialect: gemini }",
                "{ mode: slow, match_url: '*', model: 'o1*' }",
                "{ mode: slow, match_url: '*', stream: true }",
            ],
        ),
    ] {
        for rule in matching {
            check(rule, &request, true);
        }
        for rule in others {
            check(rule, &request, false);
        }
    }
}

#[test]
#[rustfmt::skip]
fn a_family_touches_its_own_kinds() {
    let url = "http://host/path";
    let requests = [
        get(url),
        get(url).mcp("search"),
        get(url).kind(Kind::Mcp),
        get(url).kind(Kind::Llm),
        get(url).kind(Kind::Other),
    ];
    for (rule, expected) in [
        ("network_faults: [{ mode: latency, delay_ms: 1 }]", [true; 5]),
        ("tool_faults: [{ mode: slow }]", [true, true, false, false, false]),
        ("tool_faults: [{ mode: slow, tool: '*' }]", [true, true, false, false, false]),
        ("tool_faults: [{ mode: slow, match_url: 'http://host/*' }]", [true; 5]),
        (
            "tool_faults: [{ mode: slow, tool: '*', match_url: 'http://host/*' }]",
            [true, true, false, false, false],
        ),
        ("tool_faults: [{ mode: slow, tool: search }]", [false, true, false, false, false]),
        ("llm_faults: [{ mode: timeout }]", [false, false, false, true, false]),
        ("llm_faults: [{ mode: timeout, match_url: 'http://host/*' }]", [false, false, false, true, false]),
    ] {
        let scope = scope(rule);
        let found = requests
            .clone()
            .map(|request| !fired(&send(&scope, &request)).is_empty());
        assert_eq!(found, expected, "{rule}");
    }
}

#[test]
#[rustfmt::skip]
fn a_rule_is_about_messages_to_an_agent_and_calls_by_one() {
    let urls = ["http://worker/*".to_owned()];
    let agents = ToolNames::new([("worker", &urls[..])]).unwrap();
    let tools = ToolNames::default().with_agents(agents);
    let to = |from| Request {
        from, rpc_tool_call: true, method: Method::POST, ..get("http://worker/").tool("worker").kind(Kind::Agent)
    };
    let card = get("http://worker/.well-known/agent-card.json").tool("worker").kind(Kind::Agent);
    let search = Request { from: Some("planner"), ..get("http://search/q") };
    for (rule, request, expected) in [
        ("tool_faults: [{ id: a, mode: slow, to: worker }]", to(None), "a: chosen"),
        ("tool_faults: [{ id: a, mode: slow, to: worker }]", card.clone(), ""),
        ("tool_faults: [{ id: a, mode: slow, tool: worker }]", card.clone(), "a: chosen"),
        ("tool_faults: [{ id: a, mode: slow, to: critic }]", to(None), ""),
        ("network_faults: [{ id: a, mode: latency, delay_ms: 1, to: worker }]", to(None), "a: chosen"),
        ("network_faults: [{ id: a, mode: latency, delay_ms: 1, to: worker }]", card, ""),
        ("context_attacks: [{ id: a, type: indirect_injection, to: worker }]", to(None), "a: chosen"),
        ("tool_faults: [{ id: a, mode: slow, to: worker, from: planner }]", to(Some("planner")), "a: chosen"),
        ("tool_faults: [{ id: a, mode: slow, to: worker, from: planner }]", to(Some("critic")), ""),
        (
            "tool_faults: [{ id: a, mode: slow, to: worker, from: planner }]",
            to(None),
            "a: bypassed, the calling agent is unknown: neither the header `x-squall-agent` nor the password in the \
             proxy's URL names one under `agents:`",
        ),
        ("tool_faults: [{ id: a, mode: slow, from: planner }]", search, "a: chosen"),
    ] {
        let scope = activation(rules_with(rule, &tools), 1, "k");
        assert_eq!(outcomes(&send(&scope, &request)).join("; "), expected, "{rule} on {request:?}");
    }
}

#[test]
#[rustfmt::skip]
fn a_tool_goes_by_every_name_it_is_given() {
    let config = ["http://search/*".to_owned()];
    let tools = ToolNames::new([("web_search", &config[..])]).unwrap();
    for (rules, request, expected) in [
        // From the config, whether the proxy says so or not.
        ("{ id: a, mode: slow, tool: web_search }", get("http://search/q").tool("web_search"), "a"),
        ("{ id: a, mode: slow, tool: web_search }", get("http://search/q"), "a"),
        ("{ id: a, mode: slow, tool: 'web_*' }", get("http://search/q"), "a"),
        ("{ id: a, mode: slow, tool: web_search }", get("http://other/q"), ""),
        // From another rule of the file that has a URL beside the name, before it or after it.
        (
            "{ id: a, mode: slow, tool: shop, match_url: 'http://shop/*' }, { id: b, mode: stale, tool: shop }",
            get("http://shop/1"),
            "a b",
        ),
        (
            "{ id: b, mode: stale, tool: shop }, { id: a, mode: slow, tool: shop, match_url: 'http://shop/*' }",
            get("http://shop/1"),
            "b a",
        ),
        // Behind one MCP server there are many tools: there the called name counts.
        (
            "{ id: a, mode: slow, tool: shop, match_url: 'http://shop/*' }",
            get("http://shop/1").mcp("other"),
            "",
        ),
        (
            "{ id: a, mode: slow, tool: shop, match_url: 'http://shop/*' }",
            get("http://shop/1").mcp("shop"),
            "a",
        ),
    ] {
        let set = rules_with(&format!("tool_faults: [{rules}]"), &tools);
        let decision = send(&activation(set, 1, "k"), &request);
        assert_eq!(
            fired(&decision).join(" "),
            expected,
            "{rules} on {request:?}"
        );
    }
}

#[test]
#[rustfmt::skip]
fn the_body_is_asked_for_only_when_something_hangs_on_it() {
    let head = |request: &Request| Request {
        body: None,
        model: None,
        stream: None,
        ..request.clone()
    };
    let mcp = Request {
        rpc_tool_call: false,
        tools: Vec::new(),
        ..get("http://mcp/").mcp("x")
    };
    for (request, rules) in [
        (
            get("http://x/"),
            &[
                ("tool_faults: [{ mode: error }]", Some(false)),
                ("tool_faults: [{ mode: error, probability: 0.5 }]", Some(true)),
                ("tool_faults: [{ mode: error, probability: 0 }]", Some(false)),
                ("tool_faults: [{ mode: slow, jitter_ms: 5 }]", Some(true)),
                ("tool_faults: [{ mode: schema_drift }]", Some(true)),
                ("tool_faults: [{ mode: schema_drift, field: a }]", Some(false)),
                ("tool_faults: [{ mode: error, ramp: { over: 5m } }]", Some(true)),
                ("tool_faults: [{ mode: slow, body: x }]", Some(true)),
                ("tool_faults: [{ mode: slow, body: x, methods: POST }]", None),
                ("tool_faults: [{ mode: slow, json: { '$.a': 1 } }]", Some(true)),
            ][..],
        ),
        (
            model_call(""),
            &[
                ("llm_faults: [{ mode: timeout, model: 'gpt*' }]", Some(true)),
                ("llm_faults: [{ mode: timeout }]", Some(false)),
            ],
        ),
        (
            mcp,
            &[
                ("tool_faults: [{ mode: slow, tool: a }]", Some(true)),
                ("tool_faults: [{ mode: slow }]", Some(true)),
            ],
        ),
        // The head names it.
        (
            get("http://mcp/").mcp("a"),
            &[
                ("tool_faults: [{ mode: slow, tool: a }]", Some(false)),
                ("tool_faults: [{ mode: slow, tool: b }]", None),
            ],
        ),
    ] {
        for (rule, expected) in rules {
            asks_for_the_body(rule, &head(&request), *expected);
        }
    }
}

#[test]
fn what_may_be_mcp_is_read_where_that_makes_a_difference() {
    for (rule, expected) in [
        ("tool_faults: [{ mode: slow }]", Some(true)),
        ("tool_faults: [{ mode: slow, tool: a }]", Some(true)),
        ("tool_faults: [{ mode: slow, tool: 'a*' }]", Some(true)),
        (
            "tool_faults: [{ mode: slow, match_url: 'http://x/*' }]",
            Some(false),
        ),
        ("network_faults: [{ mode: reset_peer }]", Some(false)),
        (
            "tool_faults: [{ mode: slow, match_url: 'http://y/*' }]",
            None,
        ),
    ] {
        asks_for_the_body(rule, &get("http://x/").unread(), expected);
    }
}

/// Whether a rule may match and then wants the body; `None`: it cannot match.
fn asks_for_the_body(rule: &str, request: &Request, expected: Option<bool>) {
    let shortlist = scope(rule)
        .snapshot()
        .shortlist(&request.facts(), request.stage);
    let found = (!shortlist.is_empty()).then_some(shortlist.needs_body);
    assert_eq!(found, expected, "{rule} on {request:?}");
}

/// MCP's older versions have no header that tells.
#[test]
#[rustfmt::skip]
fn what_turns_out_to_be_mcp_is_matched_by_what_it_calls() {
    let unread = get("http://mcp/").unread();
    let call = get("http://mcp/").mcp("search");
    let listing = Request {
        rpc_tool_call: false,
        mcp_tool_list: true,
        tools: Vec::new(),
        ..call.clone()
    };
    let plain = Request {
        may_be_rpc: false,
        body: Some(b"{}".to_vec()),
        ..unread.clone()
    };
    for (rule, on_call, on_list, on_plain) in [
        ("{ mode: slow }", true, false, true),
        ("{ mode: slow, tool: '*' }", true, false, true),
        ("{ mode: slow, tool: search }", true, false, false),
        ("{ mode: slow, tool: 'sea*' }", true, false, false),
        ("{ mode: slow, tool: other }", false, false, false),
        ("{ mode: slow, tool: search, match_url: 'http://mcp/*' }", true, false, true),
        ("{ mode: slow, tool: other, match_url: 'http://mcp/*' }", false, false, true),
        ("{ mode: slow, match_url: 'http://mcp/*' }", true, true, true),
    ] {
        for (found, expected) in [(&call, on_call), (&listing, on_list), (&plain, on_plain)] {
            let scope = scope(&format!("tool_faults: [{rule}]"));
            let snapshot = scope.snapshot();
            let shortlist = snapshot.shortlist(&unread.facts(), unread.stage);
            let elapsed = Duration::ZERO;
            let decision = snapshot.decide(&shortlist, &found.facts(), found.stage, elapsed);
            assert_eq!(fired(&decision).len() == 1, expected, "{rule} on {found:?}");
        }
    }
}

#[test]
fn a_body_that_was_not_read_bypasses_what_hangs_on_it() {
    let scope = scope("tool_faults: [{ id: a, mode: slow, body: x }, { id: b, mode: error }]");
    let unread = Request {
        body: None,
        ..post("http://x/", "")
    };
    let decision = send(&scope, &unread);
    assert_eq!(
        outcomes(&decision),
        [
            "a: bypassed, the request's body was not read (it is only up to `inspect_limit`, while `limits.inspect_memory` lasts, and not compressed), so it is not known whether the rule matches",
            "b: chosen",
        ]
    );
}

#[test]
fn rules_look_at_so_many_json_values_of_a_body_and_no_more() {
    let list = |values: usize| format!("[{}]", vec!["1"; values - 1].join(","));
    let sweep = |id: usize| format!("{{ id: r{id}, mode: slow, json: {{ '$..*': 1 }} }}");
    let eleven: Vec<_> = (0..11).map(sweep).collect();
    let eleven = scope(&format!("tool_faults: [{}]", eleven.join(", ")));
    let plain = scope("tool_faults: [{ id: p, mode: slow, json: { '$[0]': 1 } }]");
    let nested = "[".repeat(200) + &"]".repeat(200);
    let bypassed = |id: &str, why: &str| {
        format!("{id}: bypassed, the {why}, so it is not known whether the rule matches")
    };
    for (scope, body, expected) in [
        (&plain, list(100_000), "p: chosen".to_owned()),
        (
            &plain,
            list(100_001),
            bypassed(
                "p",
                "request's body is JSON of more than 100000 values, which is the most that is read",
            ),
        ),
        (
            &plain,
            nested,
            bypassed(
                "p",
                "request's body is JSON nested deeper than 127 levels, which is the most that is read",
            ),
        ),
        (&eleven, list(90_000), "r10: chosen".to_owned()),
        (
            &eleven,
            list(100_000),
            bypassed(
                "r10",
                "JSONPaths of all rules would look at more than 1000000 values of the request's body",
            ),
        ),
    ] {
        let decision = send(scope, &post("http://x/", &body));
        let outcomes = outcomes(&decision);
        assert!(outcomes.contains(&expected), "{expected}: {outcomes:?}");
    }
}

#[test]
fn regular_expressions_search_so_much_of_a_body_and_no_more() {
    let limits = DocumentLimits::default();
    let size = pattern::compile("[0-9a-z]{5}", Searched::Bytes, &limits);
    let body = " ".repeat(1 << 20);
    let cost = size.expect("an expression").memory_usage() * body.len();
    let within = (1 << 38) / cost;
    assert!((1..250).contains(&within), "{within}");
    let rule = |id: usize| format!("{{ id: r{id}, mode: slow, match_body: '[0-9a-z]{{5}}' }}");
    let rules: Vec<_> = (0..=within).map(rule).collect();
    let scope = scope(&format!("tool_faults: [{}]", rules.join(", ")));
    let why = "the regular expressions of all rules are too large to search the request's body in one exchange, so it \
               is not known whether the rule matches";
    let decision = send(&scope, &post("http://x/", &body));
    assert_eq!(outcomes(&decision), [format!("r{within}: bypassed, {why}")]);
    assert!(outcomes(&send(&scope, &post("http://x/", " "))).is_empty());
}

#[test]
#[rustfmt::skip]
fn connection_faults_are_decided_at_the_connect_when_the_authority_is_enough() {
    let at_connect = connect("https://api.example");
    let inside = get("https://api.example/v1/x").behind_connect();
    let plain_inside = get("http://api.example:8080/v1/x").behind_connect();
    let direct = get("https://api.example/v1/x");
    for (rule, expected) in [
        // at the CONNECT, at the exchange inside it, at plain HTTP inside it, without a CONNECT
        ("{ mode: refuse }", [true, false, false, true]),
        ("{ mode: refuse, match_url: 'https://api.example/*' }", [true, false, false, true]),
        ("{ mode: dns_failure, match_url: '*api*' }", [true, false, false, true]),
        ("{ mode: refuse, match_url: 'https://other/*' }", [false, false, false, false]),
        // A path, a method, a header, a body wait for the exchange.
        ("{ mode: refuse, match_url: 'https://api.example/v1/*' }", [false, true, false, true]),
        ("{ mode: refuse, methods: GET }", [false, true, true, true]),
        ("{ mode: refuse, headers: { x: '*' } }", [false, false, false, false]),
        // Other faults always do.
        ("{ mode: latency, delay_ms: 5 }", [false, true, true, true]),
        ("{ mode: timeout }", [false, true, true, true]),
    ] {
        let scope = scope(&format!("network_faults: [{rule}]"));
        let found = [&at_connect, &inside, &plain_inside, &direct]
            .map(|request| !fired(&send(&scope, request)).is_empty());
        assert_eq!(found, expected, "{rule}");
    }
}

#[test]
fn a_handshake_that_is_not_there_cannot_fail() {
    let scope = scope("network_faults: [{ id: tls, mode: tls_failure, methods: GET }]");
    let decision = send(&scope, &get("https://api.example/").behind_connect());
    assert_eq!(
        outcomes(&decision),
        ["tls: bypassed, there is no TLS handshake of the agent's left to fail"]
    );
    assert!(decision.plan.is_empty());
}
