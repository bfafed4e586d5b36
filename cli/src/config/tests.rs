//! Accepted configurations, and every error message.

use squall_documents::VariableError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_control_api::access::Access;
use squall_proxy::config::{CaSource, Credentials, Observe, RouteEntry};

use squall_documents::Variables;

use super::{Config, TokenRole};
use crate::failure::Failure;

fn variables(name: &str) -> Result<String, VariableError> {
    match name {
        "SQUALL_CI_TOKEN" => Ok("s3cret".into()),
        "SQUALL_LONG_TOKEN" => Ok("0123456789abcdef".into()),
        "SQUALL_SHORT_TOKEN" => Ok("abc12".into()),
        "PORT" => Ok("9090".into()),
        _ => Err(VariableError::NotSet),
    }
}

fn read(text: &str) -> Result<Config, Failure> {
    Config::from_text(
        PathBuf::from("/home/squall"),
        Path::new("conf/squall.yaml"),
        text,
        Variables::From(&variables),
    )
}

#[test]
fn an_empty_file_is_the_defaults() {
    for text in ["", "# nothing yet\n", "proxy:\n"] {
        let config = read(text).unwrap();
        assert_eq!(
            config.proxy.listen.to_string(),
            "127.0.0.1:7070",
            "{text:?}"
        );
        assert_eq!(config.api.listen.to_string(), "127.0.0.1:7071", "{text:?}");
    }
}

#[test]
fn every_field_arrives() {
    let config = read(include_str!("every_field.yaml")).unwrap();
    let proxy = &config.proxy;
    assert_eq!(proxy.listen.to_string(), "127.0.0.1:9090");
    assert_eq!(proxy.credentials, Credentials::Required);
    assert!(matches!(&proxy.ca, CaSource::Files { cert, key }
        if cert == Path::new("conf/ca.pem") && key == Path::new("/etc/ca.key")));
    assert_eq!(proxy.intercept.hosts, ["*.example"]);
    assert_eq!(proxy.intercept.exclude, ["*.bank.example"]);
    assert_eq!(
        proxy.connect_to,
        [("api.openai.com:443".into(), "127.0.0.1:8443".into())]
    );
    assert_eq!(proxy.upstream_ca, [PathBuf::from("conf/staging-ca.pem")]);
    assert_eq!(proxy.upstream_proxy.as_deref(), Some("http://corp:3128"));
    assert_eq!(proxy.allow, ["*.example", "10.0.0.0/8"]);
    assert_eq!(proxy.deny, ["169.254.169.254"]);
    assert!(config.open);
    assert_eq!(proxy.inspect_limit, 4 << 20);
    assert_eq!(proxy.observe, Observe::Headers);
    assert_eq!(proxy.limits.connections, 100);
    assert_eq!(proxy.limits.header_bytes, 64 << 10);
    assert_eq!(proxy.limits.header_count, 50);
    assert_eq!(proxy.limits.header_timeout, Duration::from_secs(5));
    assert_eq!(proxy.limits.idle_timeout, Duration::from_mins(1));
    assert_eq!(proxy.limits.inspect_memory, 32 << 20);
    assert_eq!(proxy.upstream.connect, Duration::from_secs(3));
    assert_eq!(proxy.upstream.response, Some(Duration::from_mins(2)));
    assert_eq!(proxy.upstream.idle, Duration::from_secs(4));
    assert!(proxy.annotate);
    assert!(matches!(&proxy.routes[0].entry, RouteEntry::Prefix(prefix) if prefix == "/openai"));
    assert_eq!(proxy.routes[0].upstream, "https://api.openai.com/");
    assert!(matches!(&proxy.routes[1].entry, RouteEntry::Listen(at) if at.port() == 7080));
    assert_eq!(proxy.routes[1].scope.as_deref(), Some("search"));
    assert_eq!(config.api.listen.to_string(), "[::1]:7171");
    assert_eq!(config.api.tokens[0].name, "ci");
    assert_eq!(config.api.tokens[0].role, TokenRole::Operator);
    assert_eq!(config.api.tokens[0].workspace, "payments");
    assert_eq!(config.api.tokens[0].secret, "s3cret");
    assert_eq!(proxy.tools[0].0, "web_search");
    assert_eq!(proxy.tools[0].1, ["http://search:5001/*"]);
    assert_eq!(proxy.tools[1].1, ["http://a/*", "http://b/*"]);
    assert_eq!(proxy.llm[0].dialect.as_deref(), Some("openai-chat"));
    assert_eq!(config.profiles.as_deref(), Some(Path::new("conf/profiles")));
    assert_eq!(config.chaos.profile.as_deref(), Some("brownout"));
    assert_eq!(config.chaos.seed, Some(42));
    assert_eq!(config.safety.ttl, Some(Duration::from_hours(1)));
    let halt = config.safety.halt.unwrap();
    assert_eq!((halt.faults, halt.error_share), (Some(10_000), Some(0.9)));
    assert_eq!(halt.over, Duration::from_secs(30));
    assert!(config.trust.commands);
    assert!(config.trust.variables.contains("STAGING_KEY"));
    assert_eq!(config.redact, ["acct_[0-9]{10}"]);
}

#[test]
fn a_secret_is_not_in_what_is_logged() {
    let config = read(include_str!("every_field.yaml")).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn complaints_say_where_what_and_what_instead() {
    let files = [
        "proxy:\n  lisen: 127.0.0.1:7070\n",
        "proxi: {}\n",
        "proxy:\n  listen: seven\n",
        "proxy: [1]\n",
        "proxy:\n  allow: all\n",
        "proxy:\n  listen: {}\n",
        "proxy:\n  credentials: require\n",
        "proxy:\n  limits: { connections: 0, header_timeout: 10, header_bytes: 8M }\n",
        "proxy:\n  upstream: { response_timeout: never }\n",
        "proxy:\n  upstream_proxy: socks5://user:hunter2@corp\n",
        "proxy:\n  open: maybe\n",
        "proxy:\n  ca: { cert: a.pem }\n",
        "proxy:\n  listen: 127.0.0.1:${NOPE}\n",
        "proxy:\n  connect_to: { api.openai.com: 127.0.0.1:1 }\n",
        "proxy: {}\nproxy: {}\n",
        "routes:\n  - { name: a, upstream: https://a.example }\n  - { name: b, prefix: x, upstream: ftp://b }\n",
        "routes:\n  - { name: a, prefix: /_scope/x, upstream: http://a }\n",
        "routes:\n  - { name: a, prefix: /a, upstream: http://a }\n  - { name: a, prefix: /a/, upstream: http://a }\n",
        "api:\n  tokens: [{ name: ci, role: admin, token: abc }]\n",
        "api:\n  tokens: [{ name: ci, role: admin, token: \"${NOPE:-abc}\" }, { name: b, role: admin, token: \"x${SQUALL_CI_TOKEN}\" }]\n",
        "api:\n  tokens: [{ name: ci, role: root, token: \"${SQUALL_CI_TOKEN}\" }]\n",
        "api:\n  tokens: [{ name: squall, role: admin, workspace: a.b, token: \"${SQUALL_CI_TOKEN}\" }]\n",
        "api:\n  tokens: [{ name: .., role: admin, token: \"${SQUALL_CI_TOKEN}\" }]\n",
        "api:\n  tokens: [{ name: ci, role: admin, token: \"${SQUALL_SHORT_TOKEN}\" }]\n",
        "api:\n  env: [\"$KEY\", A-B]\n",
        "store:\n  url: mysql://u:hunter2@db.example/squall\n",
        "store:\n  exchanges: fault\n  retain: { exchanges: many, age: 7, runs: 0 }\n",
        "safety: { ttl: forever, commands: maybe, halt: { error_share: 90, faults: many } }\n",
        "redact: [\"acct_[0-9\"]\napproval: [\"\", \"a b\"]\n",
        "tools: { search: {} }\n",
        "tools: { search: { match_url: [] } }\n",
        "proxy: { allow: [\"[[\"], deny: [10.0.0.0/40], intercept: { hosts: [\"h:99999\"], exclude: [\"\"] } }\n",
        "tools: { search: { match_url: [\"http://a/*\", \"{\"] } }\nllm: [{ match_url: \"{\", dialect: openai-chat }]\n",
        "llm: [{ match_url: \"http://gpu/*\", dialect: openai-chats }]\n",
        "chaos: { seed: -1 }\n",
        "chaos: { seed: }\n  x\n",
        "proxy: &a { listen: *a }\n",
    ];
    let shown: Vec<String> = files
        .iter()
        .map(|text| {
            let complaint = read(text).expect_err(text);
            format!(
                "{text}--> {}\n",
                complaint.to_string().replace('\n', "\n--> ")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
#[rustfmt::skip]
fn nothing_is_exposed_by_accident() {
    for (text, complaint) in [
        ("", None),
        ("proxy: { listen: 0.0.0.0:1 }", Some("narrow `proxy.allow`")),
        (
            "proxy: { listen: 0.0.0.0:1, allow: [a.example, \"0.0.0.0/0\"] }",
            Some("any destination through it (`0.0.0.0/0`)"),
        ),
        ("routes: [{ name: a, listen: 0.0.0.0:1, upstream: http://a }]", None),
        ("proxy: { listen: 0.0.0.0:1, open: true }", None),
        ("proxy: { listen: 0.0.0.0:1, allow: [\"*.example\"] }", None),
        ("api: { listen: 0.0.0.0:1 }", Some("`squall token create NAME --role admin`")),
        (
            "api: { listen: 0.0.0.0:1, tokens: [{name: a, role: admin, token: \"${SQUALL_LONG_TOKEN}\"}] }",
            None,
        ),
        ("api: { tokens: [{name: a, role: admin, token: \"${SQUALL_CI_TOKEN}\"}] }", None),
        (
            "api: { listen: 0.0.0.0:1, tokens: [{name: a, role: admin, token: \"${SQUALL_LONG_TOKEN}\"}, {name: b, role: viewer, token: \"${SQUALL_CI_TOKEN}\"}] }",
            Some("the token of `b` has 6 characters"),
        ),
        ("proxy: { listen: 127.0.0.1:7071 }", Some("both listen on")),
    ] {
        let config = read(text).unwrap();
        let checked = config
            .check_exposure()
            .and_then(|()| config.check_api(&Access::new(Vec::new())));
        match (checked, complaint) {
            (Ok(()), None) => {}
            (Err(found), Some(expected)) => {
                assert!(found.to_string().contains(expected), "{found}");
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }
}

#[test]
fn the_schema_accepts_a_file_with_every_field() {
    let file = squall_documents::parse("f", include_str!("every_field.yaml")).unwrap();
    let schema = jsonschema::validator_for(&super::schema()).expect("a schema");
    let errors: Vec<_> = schema
        .iter_errors(&file.value.to_json())
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
