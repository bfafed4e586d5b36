//! Profiles: list, read, edit, dry run, differences, history.

use std::fmt::Write as _;

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use maud::{Markup, html};
use serde::Deserialize;
use similar::{ChangeTag, TextDiff};
use squall_journal::record::{ExplainedRecord, Kind};

use crate::api::{ApiError, ApiText, List, encoded, with_query};
use crate::layout;
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, see_other};

/// Lines around a difference.
const CONTEXT: usize = 3;

/// The last part of the path of a profile that is not stored yet.
const NEW: &str = "new";

/// The text of a new profile.
const EMPTY: &str =
    "description: \ntool_faults:\n  - mode: error\n    error_code: 503\n    probability: 0.2\n";

#[derive(Debug, Deserialize)]
struct ProfileRow {
    name: String,
    source: String,
    description: String,
    rules: usize,
}

#[derive(Debug, Deserialize)]
struct VersionRow {
    version: i64,
    created_at: String,
    created_by: Option<String>,
    deleted: bool,
}

/// What a profile would have done, as the API reports it.
#[derive(Debug, Deserialize)]
struct DryRunResult {
    exchanges: u64,
    since: Option<String>,
    seed: u64,
    rules: Vec<DryRunRow>,
}

#[derive(Debug, Deserialize)]
struct DryRunRow {
    rule: String,
    family: String,
    mode: String,
    matched: u64,
    unknown: u64,
    unknown_conditions: Vec<String>,
    fires: Option<f64>,
    estimated: u64,
}

/// What the editor holds.
#[derive(Debug, Default)]
struct Draft {
    name: String,
    is_new: bool,
    text: String,
    /// Entity tag of the text that it replaces; empty for none.
    tag: String,
    /// Seed of a dry run.
    seed: String,
}

/// What is shown above the editor.
enum EditorNotice {
    Nothing,
    Said(String),
    Wrong(ApiError),
    DryRun(DryRunResult),
    Differences { title: String, old: String },
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let list: List<ProfileRow> = visit.api.get("/v1/profiles?limit=1000").await?;
    let body = html! {
        @if visit.caller.may_change() {
            p.actions { a.button href="/profiles/new" { "New profile" } }
        }
        div.scroll role="region" aria-label="Profiles" tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Name" } th scope="col" { "Source" } th.number scope="col" { "Rules" }
                        th scope="col" { "Description" }
                    }
                }
                tbody {
                    @for profile in &list.items {
                        tr {
                            td { a href={ "/profiles/" (encoded(&profile.name)) } { (profile.name) } }
                            td { span.tag { (source(&profile.source)) } }
                            td.number { (profile.rules) }
                            td { (profile.description) }
                        }
                    }
                }
            }
        }
    };
    Ok(PageContent {
        title: "Profiles".to_owned(),
        nav: "/profiles",
        assets: &[],
        body,
    }
    .into_response())
}

/// The source of a profile, for people.
fn source(source: &str) -> &str {
    match source {
        "builtin" => "built-in",
        "api" => "stored",
        other => other,
    }
}

pub(crate) async fn show(visit: Visit, Path(name): Path<String>) -> PageResult {
    if name == NEW {
        let text = match visit.param("from") {
            Some(exchange) => rule_from(&visit, exchange).await?,
            None => EMPTY.to_owned(),
        };
        let draft = Draft {
            is_new: true,
            text,
            ..Draft::default()
        };
        return editor(&visit, &draft, EditorNotice::Nothing).await;
    }
    let stored = visit.api.document(&path_of(&name)).await?;
    let mut draft = Draft {
        text: stored.text.clone(),
        tag: stored.tag.unwrap_or_default(),
        name,
        ..Draft::default()
    };
    let mut notice = match visit.param("saved") {
        Some("restored") => EditorNotice::Said("Restored.".to_owned()),
        Some(_) => EditorNotice::Said("Saved. Chaos in force uses it from now on.".to_owned()),
        None => EditorNotice::Nothing,
    };
    if let Some(version) = visit.param("version") {
        draft.text = version_of(&visit, &draft.name, version).await?.text;
        notice = EditorNotice::Differences {
            title: format!("Version {version} beside the current text"),
            old: stored.text,
        };
    }
    editor(&visit, &draft, notice).await
}

/// Carries out what the pressed button says.
pub(crate) async fn act(visit: Visit, Path(path): Path<String>) -> PageResult {
    let is_new = path == NEW;
    let draft = Draft {
        name: if is_new {
            visit.field("name").to_owned()
        } else {
            path
        },
        is_new,
        // Forms send CRLF.
        text: visit.raw_field("text").replace("\r\n", "\n"),
        tag: visit.field("tag").to_owned(),
        seed: visit.field("seed").to_owned(),
    };
    let done = match visit.field("action") {
        "save" => save(&visit, &draft, "saved").await,
        "restore" => restore(&visit, &draft).await,
        "delete" => delete(&visit, &draft).await,
        "dry-run" => match dry_run(&visit, &draft).await {
            Ok(result) => return editor(&visit, &draft, EditorNotice::DryRun(result)).await,
            Err(error) => Err(error),
        },
        _ => match visit.api.document(&path_of(&draft.name)).await {
            Ok(stored) => {
                let title = "This text beside the current one".to_owned();
                let old = stored.text;
                return editor(&visit, &draft, EditorNotice::Differences { title, old }).await;
            }
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(response) => Ok(response),
        Err(error) if error.status == 401 => Err(error),
        Err(error) => {
            let status = error.status();
            let mut page = editor(&visit, &draft, EditorNotice::Wrong(error)).await?;
            *page.status_mut() = status;
            Ok(page)
        }
    }
}

fn path_of(name: &str) -> String {
    format!("/v1/profiles/{}", encoded(name))
}

async fn version_of(visit: &Visit, name: &str, version: &str) -> Result<ApiText, ApiError> {
    let path = with_query(&path_of(name), &[("version", version)]);
    visit.api.document(&path).await
}

async fn save(visit: &Visit, draft: &Draft, said: &str) -> Result<Response, ApiError> {
    let condition = match draft.tag.as_str() {
        "" => (IF_NONE_MATCH, "*"),
        tag => (IF_MATCH, tag),
    };
    let path = path_of(&draft.name);
    let put = visit
        .api
        .send_text(Method::PUT, &path, &draft.text, Some(condition));
    put.await?;
    let page = format!("/profiles/{}", encoded(&draft.name));
    Ok(see_other(&with_query(&page, &[("saved", said)])))
}

async fn restore(visit: &Visit, draft: &Draft) -> Result<Response, ApiError> {
    let text = version_of(visit, &draft.name, visit.field("version"))
        .await?
        .text;
    let old = Draft {
        text,
        name: draft.name.clone(),
        tag: draft.tag.clone(),
        ..Draft::default()
    };
    save(visit, &old, "restored").await
}

async fn delete(visit: &Visit, draft: &Draft) -> Result<Response, ApiError> {
    let path = path_of(&draft.name);
    visit.api.send(Method::DELETE, &path, None).await?;
    Ok(see_other("/profiles"))
}

async fn dry_run(visit: &Visit, draft: &Draft) -> Result<DryRunResult, ApiError> {
    // A new profile may not have its name yet.
    let name = Some(draft.name.as_str()).filter(|name| !name.is_empty());
    let path = format!("{}/dry-run", path_of(name.unwrap_or("draft")));
    let seed = Some(("seed", draft.seed.as_str())).filter(|(_, seed)| !seed.is_empty());
    let path = with_query(&path, seed.as_slice());
    let text = visit
        .api
        .send_text(Method::POST, &path, &draft.text, None)
        .await?;
    serde_json::from_str(&text).map_err(|error| {
        let detail = format!("the dry run cannot be read: {error}");
        ApiError::new(http::StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

/// A profile with a rule for calls like an exchange.
async fn rule_from(visit: &Visit, exchange: &str) -> Result<String, ApiError> {
    let path = format!("/v1/exchanges/{}", encoded(exchange));
    let explained: ExplainedRecord = visit.api.get(&path).await?;
    let exchange = explained.exchange;
    let (family, mode) = match exchange.kind {
        Kind::Llm => ("llm_faults", "mode: rate_limit"),
        Kind::Tool | Kind::Mcp | Kind::Agent => ("tool_faults", "mode: error\n    error_code: 503"),
        Kind::Other => ("network_faults", "mode: latency\n    delay_ms: 500"),
    };
    // A JSON string is a YAML string.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let url = exchange.url.split('?').next().unwrap_or_default();
    let mut text = format!(
        "description: \"Like exchange {}\"\n{family}:\n  - {mode}\n",
        exchange.id
    );
    if url.contains("://") {
        let _ = writeln!(text, "    match_url: {}", quoted(&format!("{url}*")));
    }
    if let Some(tool) = &exchange.tool
        && exchange.kind != Kind::Other
    {
        let _ = writeln!(text, "    tool: {}", quoted(tool));
    }
    let model = exchange.llm.as_ref().and_then(|llm| llm.model.as_ref());
    if let Some(model) = model {
        let _ = writeln!(text, "    model: {}", quoted(model));
    }
    if exchange.kind == Kind::Tool {
        let _ = writeln!(text, "    methods: [{}]", exchange.method);
    }
    text.push_str("    probability: 0.5\n");
    Ok(text)
}

/// The page of one profile.
async fn editor(visit: &Visit, draft: &Draft, notice: EditorNotice) -> PageResult {
    let versions = if draft.is_new {
        Vec::new()
    } else {
        let path = format!("{}/versions", path_of(&draft.name));
        let list: List<VersionRow> = visit.api.get(&path).await?;
        list.items
    };
    let may_change = visit.caller.may_change();
    let is_stored = versions.first().is_some_and(|newest| !newest.deleted);
    let path = if draft.is_new { NEW } else { &draft.name };
    let body = html! {
        (noticed(draft, notice))
        form.editor method="post" action={ "/profiles/" (encoded(path)) } {
            (layout::csrf(visit))
            input type="hidden" name="tag" value=(draft.tag);
            @if draft.is_new {
                div.fields {
                    label { span { "Name" }
                        input name="name" value=(draft.name) required pattern="[A-Za-z0-9_][A-Za-z0-9._\\-]*" maxlength="64" autocomplete="off";
                    }
                }
            }
            label for="text" { "Profile in YAML" }
            textarea #text name="text" rows="22" spellcheck="false" autocapitalize="off" autocomplete="off"
                readonly[!may_change] data-editor { "\n" (draft.text) }
            div.fields {
                @if may_change {
                    button name="action" value="save" { "Save" }
                    button.quiet name="action" value="dry-run" formnovalidate { "Dry run" }
                    label.seed { span { "Seed of the dry run" } input name="seed" value=(draft.seed) inputmode="numeric" pattern="[0-9]*" placeholder="42"; }
                }
                @if !draft.is_new { button.quiet name="action" value="diff" { "Compare with the current text" } }
                @if may_change && is_stored { button.quiet name="action" value="delete" { "Delete" } }
            }
        }
        @if !draft.is_new { (history(visit, draft, &versions)) }
    };
    Ok(PageContent {
        title: if draft.is_new {
            "New profile".to_owned()
        } else {
            draft.name.clone()
        },
        nav: "/profiles",
        assets: &["codemirror.js", "squall-editor.js"],
        body,
    }
    .into_response())
}

fn noticed(draft: &Draft, notice: EditorNotice) -> Markup {
    match notice {
        EditorNotice::Nothing => html! {},
        EditorNotice::Said(text) => html! { p.said role="status" { (text) } },
        EditorNotice::Wrong(error) => wrong(&error),
        EditorNotice::DryRun(result) => dry_run_table(&result),
        EditorNotice::Differences { title, old } => html! {
            section aria-label="Differences" { h2 { (title) } (differences(&old, &draft.text)) }
        },
    }
}

/// The errors of a text, each with its place.
fn wrong(error: &ApiError) -> Markup {
    let others = error.errors.iter().map(|one| one.detail.as_str());
    let all: Vec<_> = if error.errors.is_empty() {
        vec![error.detail.as_str()]
    } else {
        others.collect()
    };
    html! {
        div.problem role="alert" {
            p { b { "Nothing was changed." } }
            ul #errors {
                @for detail in all {
                    @let place = place(detail);
                    li data-line=[place.map(|(line, _)| line)] data-column=[place.map(|(_, column)| column)] { (detail) }
                }
            }
        }
    }
}

/// Line and column of `line 2, column 11: …`.
fn place(detail: &str) -> Option<(u32, u32)> {
    let rest = detail.strip_prefix("line ")?;
    let (line, rest) = rest.split_once(", column ")?;
    let (column, _) = rest.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

fn dry_run_table(result: &DryRunResult) -> Markup {
    let matched: u64 = result.rules.iter().map(|rule| rule.matched).sum();
    let fires: f64 = result.rules.iter().filter_map(|rule| rule.fires).sum();
    html! {
        section aria-label="Dry run" {
            h2 { "Dry run" }
            p role="status" {
                "Would have matched " b { (text::number(matched)) } " and fired on about " b { (format!("{fires:.0}")) }
                " of the latest " (text::counted(result.exchanges, "exchange"))
                @if let Some(since) = &result.since { " (since " (text::time_of_day(since)) " UTC)" }
                ", with seed " (result.seed) "."
            }
            div.scroll role="region" aria-label="Rules" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Rule" } th.number scope="col" { "Matched" } th scope="col" { "Fires" }
                            th scope="col" { "Unknown" }
                        }
                    }
                    tbody {
                        @for rule in &result.rules {
                            tr {
                                td { b { (rule.rule) } div.soft { (rule.family) " · " (rule.mode) } }
                                td.number { (text::number(rule.matched)) }
                                td {
                                    @match rule.fires {
                                        None => span.soft { "depends on armed_by, a rate or a budget" },
                                        Some(fires) if rule.estimated > 0 => {
                                            "about " (format!("{fires:.1}")) " "
                                            span.soft { "(" (text::number(rule.estimated)) " draws by probability)" }
                                        }
                                        Some(fires) => (format!("{fires:.0}")),
                                    }
                                }
                                td {
                                    @if rule.unknown > 0 {
                                        (text::number(rule.unknown)) " "
                                        span.soft { "the journal lacks " (rule.unknown_conditions.join(", ")) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if result.rules.is_empty() { p.soft { "This profile has no rules." } }
        }
    }
}

fn differences(old: &str, new: &str) -> Markup {
    let differences = TextDiff::from_lines(old, new);
    if differences.ratio() >= 1.0 {
        return html! { p { "They are the same." } };
    }
    let groups = differences.grouped_ops(CONTEXT);
    html! {
        pre.diff tabindex="0" {
            @for (index, group) in groups.iter().enumerate() {
                @if index > 0 { span.soft { "…\n" } }
                @for change in group.iter().flat_map(|op| differences.iter_changes(op)) {
                    @let line = change.value().trim_end_matches(['\r', '\n']);
                    @match change.tag() {
                        ChangeTag::Equal => { "  " (line) "\n" }
                        ChangeTag::Delete => { del { "- " (line) "\n" } }
                        ChangeTag::Insert => { ins { "+ " (line) "\n" } }
                    }
                }
            }
        }
    }
}

fn history(visit: &Visit, draft: &Draft, versions: &[VersionRow]) -> Markup {
    let page = format!("/profiles/{}", encoded(&draft.name));
    html! {
        h2 { "History" }
        @if versions.is_empty() {
            p.soft { "Nothing is stored under this name: it is a file or a built-in profile. Save stores a copy, which replaces it." }
        } @else {
            div.scroll role="region" aria-label="History" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Version" } th scope="col" { "When (UTC)" } th scope="col" { "By" } th scope="col" { "Actions" }
                        }
                    }
                    tbody {
                        @for (index, version) in versions.iter().enumerate() {
                            @let number = version.version.to_string();
                            tr {
                                td { (number) @if version.deleted { " " span.tag.bad { "deleted" } } }
                                td.time { (version.created_at.get(..19).unwrap_or_default().replace('T', " ")) }
                                td { (version.created_by.as_deref().unwrap_or("unknown")) }
                                td {
                                    @if !version.deleted && index > 0 {
                                        form.inline method="post" action=(page) {
                                            a href=(with_query(&page, &[("version", &number)])) { "Compare version " (number) }
                                            @if visit.caller.may_change() {
                                                (layout::csrf(visit))
                                                input type="hidden" name="tag" value=(draft.tag);
                                                input type="hidden" name="version" value=(number);
                                                " "
                                                button.quiet name="action" value="restore" { "Restore version " (number) }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_place_of_an_error_is_read() {
        assert_eq!(place("line 2, column 11: unknown mode"), Some((2, 11)));
        assert_eq!(place("unknown mode: line 2, column 1:"), None);
    }
}
