//! Decides which runs need approval.
//!
//! This module checks what a suite names before its run starts. The proxy and the dialler check each destination
//! of an unapproved run when it is dialled.

use std::time::Duration;

use squall_harness::dial::host_and_port;
use squall_harness::suite::Suite;
use squall_proxy::upstream::HostPatterns;

/// The port for comparing a suite's name: entries with a port never match it.
const NO_PORT: Option<u16> = Some(0);

/// Time limit for resolving a name.
const LOOK_UP: Duration = Duration::from_secs(1);

/// Whether `approval` covers the suite's name or a host in the suite: the agent's and the tools', by name and by
/// address.
pub(super) async fn is_required(approval: &HostPatterns, name: &str, suite: &Suite) -> bool {
    if approval.is_empty() {
        return false;
    }
    let covers = |host: &str, port| approval.covering(host, port).is_some();
    let tools = suite.tools.written.iter().flat_map(|(_, globs)| globs);
    let mut tools = tools.map(|glob| host_of_glob(glob));
    if covers(name, NO_PORT) || tools.any(|(host, port)| covers(&host, port)) {
        return true;
    }
    for (_, url) in suite.dials() {
        let Some((host, port)) = host_and_port(url) else {
            continue;
        };
        let found = tokio::time::timeout(LOOK_UP, tokio::net::lookup_host((host.as_str(), port)));
        let mut found = found.await.into_iter().flatten().flatten();
        if covers(&host, Some(port)) || found.any(|at| covers(&at.ip().to_string(), Some(port))) {
            return true;
        }
    }
    false
}

/// The host in a glob over URLs, and its port, if there is one.
fn host_of_glob(glob: &str) -> (String, Option<u16>) {
    if let Some((host, port)) = host_and_port(glob) {
        return (host, Some(port));
    }
    let rest = glob.split_once("://").map_or(glob, |(_, rest)| rest);
    let end = rest.find(['/', ':', '?', '#']).unwrap_or(rest.len());
    (rest[..end].to_owned(), None)
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;
    use squall_harness::suite;

    use super::*;

    async fn is_required_for(approval: &str, written: &str) -> bool {
        let patterns = HostPatterns::new(&[approval.to_owned()]).expect("a pattern");
        let agent = if written.starts_with("agent:") {
            ""
        } else {
            "agent: {type: openai, endpoint: 'http://192.0.2.1/', model: m}\n"
        };
        let text =
            format!("{agent}{written}\ngolden_prompts: [x]\ninvariants: [{{type: completes}}]\n");
        let suite = suite::parse("weather", &text, Variables::Refused).expect("valid");
        is_required(&patterns, "weather", &suite).await
    }

    #[tokio::test]
    #[rustfmt::skip]
    async fn every_host_that_a_suite_names_counts_in_every_form() {
        for (approval, written, is_required) in [
            ("weather", "", true),
            ("wea*", "", true),
            ("*:80", "", true),
            ("*:81", "", false),
            ("127.0.0.1", "agent: {endpoint: 'http://127.0.0.1:9/'}", true),
            ("127.0.0.1", "agent: {endpoint: 'http://127.1:9/'}", true),
            ("127.0.0.1", "agent: {endpoint: 'http://0x7f000001:9/'}", true),
            ("127.0.0.1", "agent: {endpoint: 'http://2130706433:9/'}", true),
            ("127.0.0.1", "agent: {endpoint: 'http://[::ffff:127.0.0.1]:9/'}", true),
            ("127.0.0.1", "agent: {endpoint: 'http://localhost:9/'}", true),
            ("127.0.0.1:8", "agent: {endpoint: 'http://localhost:9/'}", false),
            ("localhost", "agent: {endpoint: 'http://127.1:9/'}", true),
            ("localhost", "agent: {endpoint: 'http://[::1]:9/'}", true),
            ("localhost", "agent: {endpoint: 'http://LocalHost.:9/'}", true),
            ("localhost", "agent: {endpoint: 'http://192.0.2.7:9/'}", false),
            ("a.test", "agent: {endpoint: 'http://192.0.2.7/', reset_endpoint: 'http://A.test./'}", true),
            ("a.test", "model: {name: m, base_url: 'http://a.test/v1'}", true),
            ("a.test", "embeddings: {name: m, base_url: 'http://a.test/v1'}", true),
            ("*.test", "tools: {book: {match_url: ['https://*.test/book*']}}", true),
            ("*.test:443", "tools: {book: {match_url: ['https://A.test/book*']}}", true),
            ("*.test:80", "tools: {book: {match_url: ['https://A.test/book*']}}", false),
            ("*.test", "tools: {book: {match_url: ['*://a.test./book*']}}", true),
            ("*.test", "tools: {book: {match_url: ['a.test:8443/*']}}", true),
            ("127.0.0.1", "tools: {book: {match_url: ['http://127.1/book*']}}", true),
            ("10.0.0.0/8", "tools: {book: {match_url: ['http://167837953/book*']}}", true),
            ("*.test", "tools: {book: {match_url: ['*/book*']}}", false),
        ] {
            let found = is_required_for(approval, written).await;
            assert_eq!(found, is_required, "{approval}: {written}");
        }
    }
}
