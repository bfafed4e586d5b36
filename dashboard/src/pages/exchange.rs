//! One exchange: why each rule did or did not fire on it, and what to do with it.

use axum::extract::Path;
use axum::response::IntoResponse as _;
use http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};
use squall_journal::record::{
    CanaryRecord, ExchangeRecord, ExplainedRecord, Outcome, RuleOutcome, RuleRecord,
};

use crate::api::{ApiClient, ApiError, List, encoded, with_query};
use crate::layout;
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, fragment};

/// Recordings in which an exchange is searched.
const RECORDINGS: usize = 20;

/// Bytes of a body that the page shows.
const LONGEST_BODY: usize = 100_000;

/// The tool, the model or the method of agents.
pub(super) fn subject(exchange: &ExchangeRecord) -> &str {
    let model = exchange.llm.as_ref().and_then(|llm| llm.model.as_deref());
    let agent = exchange.agent.as_ref();
    let method = agent.and_then(|agent| agent.method.as_deref());
    exchange
        .tool
        .as_deref()
        .or(model)
        .or(method)
        .unwrap_or_default()
}

/// What the agent got.
pub(super) fn status(exchange: &ExchangeRecord) -> Markup {
    let class = match exchange.outcome {
        Outcome::Ok if exchange.status.is_none_or(|status| status < 400) => "good",
        Outcome::Open => "",
        _ => "bad",
    };
    let why = match exchange.outcome {
        Outcome::Ok => "",
        Outcome::Open => "open",
        Outcome::Injected => "injected",
        Outcome::UpstreamError => "upstream failed",
        Outcome::ClientGone => "agent disconnected",
        Outcome::ClientRejectedCa => "agent rejected the CA",
        Outcome::Denied => "denied",
    };
    html! {
        span class={ "status " (class) } {
            @match exchange.status { Some(status) => (status), None => "none" }
        }
        @if !why.is_empty() { " " span.soft { (why) } }
    }
}

/// The rules that took effect.
pub(super) fn applied(exchange: &ExchangeRecord) -> impl Iterator<Item = &RuleRecord> {
    let rules = exchange.rules.iter();
    rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
}

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let path = format!("/v1/exchanges/{}", encoded(&id));
    let explained: ExplainedRecord = visit.api.get(&path).await?;
    let ready = visit.api.get::<Value>("/readyz").await.unwrap_or_default();
    let listeners = ready["listeners"].as_array().into_iter().flatten();
    let mut proxy = listeners.filter(|one| one["name"] == "proxy");
    let proxy = proxy.next().and_then(|one| one["address"].as_str());
    let exchange = &explained.exchange;
    let body = html! {
        article {
            h2 tabindex="-1" { (exchange.method) " " (exchange.url) }
            p {
                span.kind { (exchange.kind.as_str()) } " " (subject(exchange)) " · " (status(exchange))
                @for rule in applied(exchange) { " " span.tag.on { (rule.mode) } }
            }
            @if let Some(error) = &exchange.error { p.note { (text::marked(error)) } }
            (actions(&visit, exchange, proxy.unwrap_or_default()))
            (timeline(exchange))
            (rules(&explained))
            @if !exchange.canaries.is_empty() { (canaries(&exchange.canaries)) }
            (facts(exchange))
            h3 { "Headers and bodies" }
            div #recorded {
                p.soft { "The journal keeps neither. A recording that ran at the time has them, redacted." }
                a.button.quiet href={ "/live/" (encoded(&exchange.id)) "/recorded" }
                    hx-get={ "/live/" (encoded(&exchange.id)) "/recorded" } hx-target="#recorded" { "Look in recordings" }
            }
        }
    };
    Ok(PageContent {
        title: "Exchange".to_owned(),
        nav: "/live",
        assets: &[],
        body,
    }
    .into_response())
}

fn actions(visit: &Visit, exchange: &ExchangeRecord, proxy: &str) -> Markup {
    html! {
        div.actions {
            @if exchange.method != "CONNECT" {
                button.quiet type="button" data-copy="curl" { "Copy as curl" }
            }
            @if visit.caller.may_change() {
                a.button.quiet href=(with_query("/profiles/new", &[("from", &exchange.id)])) { "Make a rule from this" }
                form method="post" action="/live/record" hx-post="/live/record" hx-target="#told" hx-swap="innerHTML" {
                    (layout::csrf(visit))
                    input type="hidden" name="scope" value=(exchange.scope);
                    button.quiet { "Record scope " (exchange.scope) }
                }
            }
        }
        div #told aria-live="polite" {}
        @if exchange.method != "CONNECT" {
            details { summary { "curl" } pre #curl { (curl(exchange, proxy)) } }
        }
    }
}

/// The same request by curl, through the proxy. Headers and body are not in the journal. `-g`: brackets in a URL are no
/// patterns.
fn curl(exchange: &ExchangeRecord, proxy: &str) -> String {
    let method = match &*exchange.method {
        "HEAD" => "-I".to_owned(),
        method => format!("-X {}", quoted(method)),
    };
    let url = quoted(&exchange.url);
    let proxy = quoted(&format!("http://{proxy}"));
    let scope = quoted(&format!("x-squall-scope: {}", exchange.scope));
    format!("curl -g {method} {url} -x {proxy} -H {scope}")
}

/// A word of a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where the time went, as a bar.
fn timeline(exchange: &ExchangeRecord) -> Markup {
    let Some(total) = exchange.duration_ms else {
        return html! {};
    };
    #[expect(clippy::cast_precision_loss, reason = "microseconds of one exchange")]
    let overhead = exchange.overhead_us as f64 / 1_000.0;
    let injected = exchange.injected_ms.min(total);
    let overhead = overhead.min(total - injected);
    let rest = total - injected - overhead;
    let share = |ms: f64| format!("{:.3}", 100.0 * ms / total.max(0.001));
    let parts = [
        ("overhead", "Squall itself", overhead),
        ("injected", "injected delay", injected),
        ("waited", "upstream and transfer", rest),
    ];
    let mut begin = 0.0;
    html! {
        h3 { "Timeline: " (text::milliseconds(total)) }
        svg.timeline viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
            @for (class, _, ms) in parts {
                rect class=(class) x=(share(begin)) y="0" width=(share(ms)) height="4" {}
                ({ begin += ms; "" })
            }
        }
        ul.legend {
            @for (class, name, ms) in parts { li class=(class) { (name) " " b { (text::milliseconds(ms)) } } }
        }
    }
}

fn rules(explained: &ExplainedRecord) -> Markup {
    let exchange = &explained.exchange;
    let misses = explained.nearest_misses.as_deref().unwrap_or_default();
    html! {
        h3 { "Rules" }
        @if !exchange.rules.is_empty() || !misses.is_empty() {
            div.scroll role="region" aria-label="Rules" tabindex="0" {
                table {
                    thead { tr { th scope="col" { "Outcome" } th scope="col" { "Rule" } th scope="col" { "Why" } } }
                    tbody {
                        @for rule in &exchange.rules { (rule_row(rule)) }
                        @for miss in misses {
                            tr {
                                td { span.tag { "no match" } }
                                td { (name(&miss.rule, &miss.mode)) div.soft { (miss.profile) } }
                                td { (text::marked(&miss.why)) }
                            }
                        }
                    }
                }
            }
        }
        @if exchange.rules_more > 0 { p.soft { "and " (text::counted(exchange.rules_more, "more eligible rule")) } }
        @if explained.nearest_misses.is_none() {
            p.soft { "The rules of that time are no longer active, so it is unknown which of them did not match." }
        } @else if exchange.rules.is_empty() && misses.is_empty() {
            p.soft { "No rule matched, and none nearly did." }
        }
    }
}

fn name(rule: &str, mode: &str) -> Markup {
    html! { b { (rule) } @if !rule.starts_with(mode) { " (" (mode) ")" } }
}

fn rule_row(rule: &RuleRecord) -> Markup {
    let (class, outcome) = match rule.outcome {
        RuleOutcome::Applied => ("on", "applied"),
        RuleOutcome::Bypassed => ("bad", "bypassed"),
        RuleOutcome::NotDrawn => ("", "not drawn"),
    };
    let parameters = rule.parameters.as_object().into_iter().flatten();
    html! {
        tr {
            td { span class={ "tag " (class) } { (outcome) } }
            td { (name(&rule.rule, &rule.mode)) div.soft { (rule.profile) " · " (rule.family) } }
            td {
                @if rule.ordinal > 0 { div { "matching call " (text::number(rule.ordinal)) } }
                @if let Some(drawn) = rule.drawn.filter(|_| rule.outcome != RuleOutcome::NotDrawn) { div { "drew " (format!("{drawn:.6}")) } }
                @if let Some(reason) = &rule.reason { div { (text::marked(reason)) } }
                @if let Some(spent) = &rule.spent {
                    div { (text::number(spent.input_tokens + spent.output_tokens)) " tokens used before" }
                }
                @if !rule.told_of.is_empty() { div { "changed results of " (rule.told_of.join(", ")) " for the model" } }
                @for (name, value) in parameters { div.soft { code { (name) ": " (value.to_string()) } } }
            }
        }
    }
}

fn canaries(canaries: &[CanaryRecord]) -> Markup {
    html! {
        h3 { "Canaries" }
        ul {
            @for canary in canaries {
                li {
                    code { (canary.canary) }
                    @match canary.place {
                        None => { " injected by rule " (canary.rule) }
                        Some(place) => {
                            " leaked in its " (place.as_str())
                            @if let Some(encoding) = canary.encoding { " (" (encoding.as_str()) ")" }
                            "; rule " (canary.rule) " injected it in "
                            a href={ "/live/" (encoded(&canary.planted_by)) } { (canary.planted_by) }
                        }
                    }
                }
            }
        }
    }
}

fn facts(exchange: &ExchangeRecord) -> Markup {
    let fact = |name: &str, value: Option<String>| {
        html! {
            @if let Some(value) = value { dt { (name) } dd { (value) } }
        }
    };
    let llm = exchange.llm.as_ref();
    let tokens = llm.and_then(|llm| Some((llm.input_tokens?, llm.output_tokens?)));
    let tokens = tokens
        .map(|(input, output)| format!("{} in, {} out", text::number(input), text::number(output)));
    let tools = llm
        .map(|llm| llm.tool_calls.join(", "))
        .filter(|tools| !tools.is_empty());
    html! {
        h3 { "Details" }
        dl.facts {
            dt { "Scope" } dd { a href=(with_query("/live", &[("scope", &exchange.scope)])) { (exchange.scope) } }
            @if let Some(run) = &exchange.run { dt { "Run" } dd { a href={ "/runs/" (encoded(run)) } { (run) } } }
            (fact("Started", Some(exchange.started_at.clone())))
            (fact("Upstream's status", exchange.upstream_status.map(|status| status.to_string())))
            (fact("Bytes", Some(format!(
                "{} from the agent, {} to it", text::number(exchange.request_bytes), text::number(exchange.response_bytes)
            ))))
            (fact("Dialect", exchange.dialect.clone()))
            (fact("Model", llm.and_then(|llm| llm.model.clone())))
            (fact("Tokens", tokens))
            (fact("Finish reason", llm.and_then(|llm| llm.finish.clone())))
            (fact("Tools that the model called", tools))
            (fact("Seed", Some(exchange.seed.to_string())))
            (fact("Fingerprint", exchange.fingerprint.clone()))
            (fact("Attempt", exchange.attempt.map(|attempt| attempt.to_string())))
            (fact("Activation", exchange.activation.clone()))
            (fact("Id", Some(exchange.id.clone())))
        }
    }
}

/// Headers and bodies of an exchange, from a recording that has it.
pub(crate) async fn recorded(visit: Visit, Path(id): Path<String>) -> PageResult {
    let path = format!("/v1/exchanges/{}", encoded(&id));
    let explained: ExplainedRecord = visit.api.get(&path).await?;
    let body = match find_recorded(&visit.api, &explained.exchange).await? {
        Some((recording, entry)) => html! {
            p { "From recording " a href={ "/recordings/" (encoded(&recording)) } { (recording) } "." }
            (message("Request", &entry["request"], &entry["request"]["postData"]))
            (message("Response", &entry["response"], &entry["response"]["content"]))
        },
        None => {
            html! { p { "No recording has this exchange. Record the scope, and send the request again." } }
        }
    };
    Ok(PageContent {
        title: "Headers and bodies".to_owned(),
        nav: "/live",
        assets: &[],
        body,
    }
    .into_response())
}

/// The entry of an HTTP archive with this exchange, and the recording's id.
async fn find_recorded(
    api: &ApiClient,
    exchange: &ExchangeRecord,
) -> Result<Option<(String, Value)>, ApiError> {
    let list: List<Value> = api
        .get(&format!("/v1/recordings?limit={RECORDINGS}"))
        .await?;
    for recording in list.items {
        let text = |name: &str| recording[name].as_str();
        let (Some(id), Some(started)) = (text("id"), text("started_at")) else {
            continue;
        };
        // Times of one format and zone compare as texts.
        let at = &*exchange.started_at;
        let ran = started <= at && text("ended_at").is_none_or(|ended| ended >= at);
        if !ran || text("scope").is_some_and(|scope| scope != exchange.scope) {
            continue;
        }
        let path = format!("/v1/recordings/{}?format=har", encoded(id));
        let mut archive: Value = api.get(&path).await?;
        let entries = archive["log"]["entries"].as_array_mut();
        let mut entries = entries.into_iter().flatten();
        if let Some(entry) = entries.find(|entry| entry["_squall"]["exchange"] == exchange.id) {
            return Ok(Some((id.to_owned(), entry.take())));
        }
    }
    Ok(None)
}

fn message(title: &str, message: &Value, content: &Value) -> Markup {
    let headers = message["headers"].as_array().into_iter().flatten();
    let body = content["text"].as_str().unwrap_or_default();
    let shown: String = body.chars().take(LONGEST_BODY).collect();
    let plain = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    html! {
        h4 { (title) }
        dl.facts { @for header in headers { dt { (plain(&header["name"])) } dd { (plain(&header["value"])) } } }
        @if body.is_empty() { p.soft { "no body" } } @else { pre tabindex="0" { (shown) } }
        @if shown.len() < body.len() { p.soft { "cut after " (text::number(LONGEST_BODY as u64)) " characters" } }
        @if let Some(comment) = content["comment"].as_str().or(message["comment"].as_str()) { p.soft { (comment) } }
    }
}

/// Starts a recording of the scope of an exchange.
pub(crate) async fn record(visit: Visit) -> PageResult {
    let document = json!({ "scope": visit.field("scope") });
    let recording = visit
        .api
        .send(Method::POST, "/v1/recordings", Some(&document))
        .await?;
    let id = recording["id"].as_str().unwrap_or_default();
    let body = html! {
        p.note {
            "Recording " a href={ "/recordings/" (encoded(id)) } { (id) } " runs. It has the headers and bodies of "
            "exchanges from now on."
        }
    };
    if visit.is_partial {
        return Ok(fragment(body));
    }
    Ok(PageContent {
        title: "Recording".to_owned(),
        nav: "/live",
        assets: &[],
        body,
    }
    .into_response())
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        assert_eq!(quoted("http://a.test/?q=$(id)"), "'http://a.test/?q=$(id)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
