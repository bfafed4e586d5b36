//! Checks the traffic of the one invocation.

use std::collections::BTreeSet;

use squall_journal::record::{Kind, Outcome};
use squall_journal::ring::host_and_port;
use squall_profiles::family::Family;
use squall_profiles::profile::Profile;
use squall_profiles::rule::Rule;

use super::checks::Checks;
use super::{ProbeResult, Verifying};
use crate::agents::settings::Way;
use crate::count::count;
use crate::reach::SeenExchange;
use crate::suite::Suite;

/// Runs all checks of the traffic.
pub(super) fn look(of: &Verifying<'_>, asked: &ProbeResult, checks: &mut Checks<'_>) {
    let all: Vec<_> = asked
        .own
        .exchanges
        .iter()
        .chain(&asked.shared.exchanges)
        .collect();
    if all.is_empty() {
        let found = "no call of the agent came through the proxy: it makes none, or goes past it";
        checks.failed("proxy", "/agent", found.to_owned(), unseen(of.suite));
        for name in ["scopes", "upstreams", "models", "tools"] {
            checks.skipped(name, "no call was seen");
        }
        return;
    }
    proxy(of.suite, &all, checks);
    scopes(asked, checks);
    upstreams(&all, checks);
    models(of.suite, &all, checks);
    tools(of.suite, &all, checks);
}

/// Advice for an agent whose calls are not seen.
fn unseen(suite: &Suite) -> &'static str {
    match &suite.agent.way {
        Way::Http(_) | Way::OpenAi(_) if suite.agent.start.is_none() => {
            "start the agent with the variables that `squall env` prints, or let Squall start it: `start: \
             {command: […], ready_url: …}`; a client that ignores HTTP_PROXY and HTTPS_PROXY needs a base URL: \
             a route of `squall.yaml`"
        }
        Way::Http(_) | Way::OpenAi(_) | Way::Command(_) | Way::Python { .. } => {
            "it was started with HTTP_PROXY and HTTPS_PROXY; it made no call, or its client reads neither (Node needs \
             version 22.21, or 24 and later): give it the proxy by hand, or a base URL: a route of `squall.yaml`"
        }
    }
}

fn proxy(suite: &Suite, all: &[&SeenExchange], checks: &mut Checks<'_>) {
    let with = |outcome| {
        let those = all
            .iter()
            .filter(move |seen| seen.record.outcome == outcome);
        those.map(|seen| host(seen)).collect::<BTreeSet<_>>()
    };
    let rejecting = with(Outcome::ClientRejectedCa);
    let denied = with(Outcome::Denied);
    if !rejecting.is_empty() {
        let found = format!(
            "the agent rejects Squall's certificate for {}; what it calls there is not seen",
            list(&rejecting)
        );
        let advice = if matches!(suite.agent.way, Way::Http(_) | Way::OpenAi(_))
            && suite.agent.start.is_none()
        {
            "start the agent with the variables that `squall env` prints, SSL_CERT_FILE and its like among them"
        } else {
            "its TLS library reads none of SSL_CERT_FILE, REQUESTS_CA_BUNDLE and their like: give it \
             `squall ca export`, or leave the host out by `proxy.intercept.exclude` in `squall.yaml`"
        };
        checks.failed("proxy", "/agent", found, advice);
    } else if !denied.is_empty() {
        let found = format!("the proxy denies calls to {}", list(&denied));
        checks.failed(
            "proxy",
            "/agent",
            found,
            "allow them: `proxy.allow` in `squall.yaml`",
        );
    } else {
        checks.passed(
            "proxy",
            format!("{} came through", count(all.len(), "call")),
        );
    }
}

/// Reports how the agent's calls carried their scope.
fn scopes(asked: &ProbeResult, checks: &mut Checks<'_>) {
    let (own, others) = (&asked.own.exchanges, asked.shared.exchanges.len());
    let advice = "have the agent pass the request's `baggage` or `traceparent` header on with every call that it \
                  makes for it, as OpenTelemetry's instrumentations do";
    if own.is_empty() {
        let found = format!(
            "{} named no scope: prompts are sent one at a time",
            count(others, "call")
        );
        return checks.warned("scopes", "/agent", found, advice);
    }
    let ways: BTreeSet<_> = own.iter().map(|seen| carried(seen, asked)).collect();
    let ways: Vec<_> = ways.into_iter().collect();
    let found = format!(
        "{} named the scope by {}",
        count(own.len(), "call"),
        ways.join(", ")
    );
    if others > 0 {
        let found = format!(
            "{found}; {} named none, and would meet no chaos",
            count(others, "call")
        );
        return checks.warned("scopes", "/agent", found, advice);
    }
    checks.passed("scopes", found);
}

fn carried(seen: &SeenExchange, asked: &ProbeResult) -> &'static str {
    let header = |name| {
        seen.request
            .as_ref()
            .and_then(|request| request.header(name))
    };
    let scope = format!("squall.scope={}", asked.invocation.place.scope);
    let trace = asked
        .invocation
        .traceparent
        .split('-')
        .nth(1)
        .unwrap_or_default();
    if header("baggage").is_some_and(|baggage| baggage.contains(&scope)) {
        "baggage"
    } else if header("traceparent").is_some_and(|parent| parent.contains(trace)) {
        "traceparent"
    } else {
        "credentials"
    }
}

/// Reports calls that fail without an injected fault.
fn upstreams(all: &[&SeenExchange], checks: &mut Checks<'_>) {
    let failing: BTreeSet<_> = all.iter().filter_map(|seen| wrong(seen)).collect();
    if failing.is_empty() {
        return checks.passed("upstreams", "every call was answered");
    }
    let found = format!("without chaos, {}", list(&failing));
    let advice = "correct what the agent calls, or its keys: what fails now fails under chaos too";
    checks.warned("upstreams", "/agent", found, advice);
}

fn wrong(seen: &SeenExchange) -> Option<String> {
    let record = &seen.record;
    match (record.outcome, record.status) {
        (Outcome::UpstreamError, _) => Some(format!("{} could not be reached", host(seen))),
        (Outcome::Ok, Some(status @ (401 | 403 | 429 | 500..))) => {
            Some(format!("{} answered {status}", host(seen)))
        }
        _ => None,
    }
}

fn models(suite: &Suite, all: &[&SeenExchange], checks: &mut Checks<'_>) {
    let models: BTreeSet<_> = all.iter().filter_map(|seen| model(seen)).collect();
    if !models.is_empty() {
        return checks.passed("models", list(&models));
    }
    let demanded = rule_of(suite, |family| {
        matches!(family, Family::Llm | Family::Context)
    });
    match demanded {
        Some(pointer) => checks.failed(
            "models",
            &pointer,
            "no call of a model was recognised, and the suite has rules for models".to_owned(),
            "name the endpoint and its dialect under `llm:` in `squall.yaml`: `{match_url: \
             \"http://gpu-box:8000/v1/*\", dialect: openai-chat}`",
        ),
        None => checks.skipped(
            "models",
            "no call of a model was recognised, and no rule is about one",
        ),
    }
}

fn model(seen: &SeenExchange) -> Option<String> {
    let record = &seen.record;
    let dialect = record
        .dialect
        .as_deref()
        .filter(|_| record.kind == Kind::Llm)?;
    let model = record.llm.as_ref().and_then(|llm| llm.model.as_deref());
    let model = model.map(|model| format!("{model} ")).unwrap_or_default();
    Some(format!("{model}at {} ({dialect})", host(seen)))
}

/// Reports the called tools, and scenarios whose rules for tools the calls so far can never match.
fn tools(suite: &Suite, all: &[&SeenExchange], checks: &mut Checks<'_>) {
    let (mut tools, mut called) = (BTreeSet::new(), BTreeSet::new());
    for seen in all {
        let record = &seen.record;
        let named = record.tool.iter().chain(&record.more_tools);
        tools.extend(named.clone().cloned());
        called.extend(named.map(String::as_str));
        if record.tool.is_none() && record.kind == Kind::Tool {
            tools.insert(format!("{} (no name)", host(seen)));
        }
        let inside = record.llm.iter().flat_map(|llm| &llm.tool_calls);
        called.extend(inside.clone().map(String::as_str));
        tools.extend(inside.map(|tool| format!("{tool} (called by the model)")));
    }
    let mut kinds = all.iter().map(|seen| seen.record.kind);
    let on_the_wire = kinds.any(|kind| matches!(kind, Kind::Tool | Kind::Mcp | Kind::Agent));
    let may_match = |rule: &Rule| match rule.tool() {
        Some(tool) => called.contains(tool),
        None => on_the_wire || !rule.needs_a_tool_call(),
    };
    let is_idle = |chaos: &Profile| {
        let rules = || chaos.rules.iter();
        let mut of_tools = rules()
            .filter(|rule| rule.family() == Family::Tool)
            .peekable();
        of_tools.peek().is_some() && !of_tools.any(|rule| may_match(rule))
    };
    let idle: Vec<_> = scenarios(suite)
        .filter(|(_, _, chaos)| is_idle(chaos))
        .collect();
    let Some((pointer, _, _)) = idle.first() else {
        if tools.is_empty() {
            return checks.skipped("tools", "no tool was called, and no rule is about one");
        }
        return checks.passed("tools", list(&tools));
    };
    let tools = if tools.is_empty() {
        "no tool".to_owned()
    } else {
        list(&tools)
    };
    let names: BTreeSet<_> = idle
        .iter()
        .map(|(_, name, _)| format!("`{name}`"))
        .collect();
    let found = format!(
        "the first golden prompt called {tools}; no rule for tools in {} can match such calls",
        list(&names)
    );
    let advice = "name the tools' URLs under `tools:`, ask first what makes the agent use the tools, or leave these \
                  rules out: a scenario without a fault makes the run inconclusive";
    checks.warned("tools", pointer, found, advice);
}

/// The chaos in a suite, with its pointer and name.
fn scenarios(suite: &Suite) -> impl Iterator<Item = (String, &str, &Profile)> {
    let scenarios = suite.scenarios().iter().enumerate();
    let chaos = suite
        .chaos
        .iter()
        .map(|chaos| ("/chaos".to_owned(), "chaos", &**chaos));
    chaos.chain(scenarios.map(|(place, one)| {
        let pointer = format!("/contract/chaos_matrix/{place}");
        (pointer, one.name.as_str(), &*one.chaos)
    }))
}

/// Pointer to the first chaos in the suite with a rule of such a family.
fn rule_of(suite: &Suite, wanted: impl Fn(Family) -> bool) -> Option<String> {
    let has = |chaos: &Profile| chaos.rules.iter().any(|rule| wanted(rule.family()));
    let mut all = scenarios(suite);
    all.find_map(|(pointer, _, chaos)| has(chaos).then_some(pointer))
}

fn host(seen: &SeenExchange) -> String {
    match host_and_port(&seen.record.url) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let shown: Vec<_> = names.iter().take(8).map(String::as_str).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
