//! Parses documents in requests, JSON or YAML by `Content-Type`, within limits of size and depth.

use std::collections::BTreeMap;
use std::env::VarError;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::IgnoredAny;
use squall_documents::{DocumentLimits, Limited, Variables, over_budget};
use squall_profiles::profile::{self, Profile};

use crate::problem::{ApiProblem, ProblemDetail};
use crate::trust::SentVariables;
use crate::trust::Trust;

/// Longest document, bytes; for a run, the longest order.
pub(crate) const MOST: usize = 1 << 20;

/// Time limit for receiving a document.
const SLOWEST: Duration = Duration::from_mins(1);

/// A document as it was sent.
#[derive(Debug)]
pub(crate) struct RequestDocument {
    pub(crate) text: String,
    form: BodyFormat,
}

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    Json,
    Yaml,
    /// A profile or a suite with values for its variables.
    WithVariables,
    /// YAML within another document that was read.
    Enclosed,
    /// Unknown: no content type, or the one that curl sends with `-d`.
    Unstated,
}

/// Content type of a profile with values for its variables; the daemon's environment is not used.
pub const WITH_VARIABLES: &str = "application/vnd.squall.profile+json";

/// The same of a suite.
pub(crate) const SUITE_WITH_VARIABLES: &str = "application/vnd.squall.suite+json";

/// A profile or a suite with values for its variables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithVariables {
    /// Its text, YAML or JSON.
    document: String,
    /// Names and values.
    variables: BTreeMap<String, String>,
}

impl BodyFormat {
    fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        match media_type.to_ascii_lowercase().as_str() {
            WITH_VARIABLES | SUITE_WITH_VARIABLES => Some(Self::WithVariables),
            "application/json" | "text/json" => Some(Self::Json),
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => {
                Some(Self::Yaml)
            }
            other if other.ends_with("+json") => Some(Self::Json),
            other if other.ends_with("+yaml") => Some(Self::Yaml),
            "" | "application/x-www-form-urlencoded" => Some(Self::Unstated),
            _ => None,
        }
    }
}

/// Longest document that holds recorded traffic, bytes.
pub(crate) const LONG: usize = 16 << 20;

impl<S: Send + Sync> FromRequest<S> for RequestDocument {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiProblem> {
        let content_type = match request.headers().get(CONTENT_TYPE) {
            Some(value) => value.to_str().unwrap_or("\u{fffd}").to_owned(),
            None => String::new(),
        };
        let form = BodyFormat::of(&content_type).ok_or_else(|| {
            ApiProblem::unsupported_type(format!(
                "`{content_type}` is not read here; send application/json or application/yaml"
            ))
        })?;
        let body = body(request).await?;
        let text = String::from_utf8(body.into()).map_err(|error| {
            ApiProblem::malformed(format!("the document is not UTF-8: {error}"))
        })?;
        Ok(Self { text, form })
    }
}

/// The body of a request, up to the limit of its route.
pub(crate) async fn body(request: Request) -> Result<Bytes, ApiProblem> {
    let body = tokio::time::timeout(SLOWEST, Bytes::from_request(request, &())).await;
    let body = body.map_err(|_| {
        let seconds = SLOWEST.as_secs();
        ApiProblem::malformed(format!("the body did not come within {seconds} seconds"))
    })?;
    body.map_err(|rejection| {
        let detail = rejection.body_text();
        match rejection.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiProblem::too_large(format!(
                "a document may have {MOST} bytes, a replay session and a tape {LONG}"
            )),
            _ => ApiProblem::malformed(format!("the body cannot be read: {detail}")),
        }
    })
}

impl RequestDocument {
    /// The document as a profile; errors call it `name`. Without values for its variables it may use those that
    /// `trust` lists. A document sent as JSON must be JSON, although the YAML parser accepts more.
    pub(crate) fn profile(&self, name: &str, trust: &Trust) -> Result<Profile, ApiProblem> {
        let sent = || trust.variables(|variables| profile::parse_file(name, &self.text, variables));
        self.check_bounds()?;
        let profile = match self.form {
            BodyFormat::Unstated | BodyFormat::Yaml | BodyFormat::Enclosed => sent(),
            BodyFormat::Json => {
                serde_json::from_str::<IgnoredAny>(&self.text).map_err(|error| not_json(&error))?;
                sent()
            }
            BodyFormat::WithVariables => {
                let sent: WithVariables =
                    serde_json::from_str(&self.text).map_err(|error| not_json(&error))?;
                let lookup = |name: &str| {
                    let value = sent.variables.get(name).cloned();
                    value.ok_or(VarError::NotPresent)
                };
                let enclosed = Self {
                    text: sent.document,
                    form: BodyFormat::Enclosed,
                };
                enclosed.check_bounds()?;
                profile::parse_file(name, &enclosed.text, Variables::From(&lookup))
            }
        };
        profile.map_err(|errors| ApiProblem::profile(&errors))
    }

    /// The inner document, and the values sent with it.
    pub(crate) fn opened(self) -> Result<(Self, SentVariables), ApiProblem> {
        if self.form != BodyFormat::WithVariables {
            return Ok((self, SentVariables::default()));
        }
        let sent: WithVariables =
            serde_json::from_str(&self.text).map_err(|error| not_json(&error))?;
        let document = Self {
            text: sent.document,
            form: BodyFormat::Enclosed,
        };
        Ok((document, SentVariables::new(sent.variables)))
    }

    /// Whether values for variables were sent with it.
    pub(crate) fn has_variables(&self) -> bool {
        self.form == BodyFormat::WithVariables
    }

    /// The document as a value, by its format; without one it is JSON.
    pub(crate) fn value(&self) -> Result<serde_json::Value, ApiProblem> {
        let value = match self.form {
            BodyFormat::Json | BodyFormat::Unstated => {
                serde_json::from_str(&self.text).map_err(|error| not_json(&error))?
            }
            BodyFormat::WithVariables => {
                return Err(ApiProblem::unsupported_type(
                    "variables are sent with profiles and suites only; send application/json or application/yaml",
                ));
            }
            BodyFormat::Yaml | BodyFormat::Enclosed => tree(&self.text)
                .map_err(|error| self.not_yaml("the document is not YAML", &error))?,
        };
        self.bounded(value)
    }
}

/// Deepest nesting of a document.
const DEPTH: usize = 64;

/// Most aliases of a YAML document, and its most nodes with all aliases expanded.
const ALIASES: usize = 1_000;
const PARTS: usize = 100_000;

impl RequestDocument {
    /// The document as a value; without a format it is YAML, of which JSON is a subset. Depth and alias expansion
    /// are bounded.
    pub(crate) fn tree(&self) -> Result<serde_json::Value, ApiProblem> {
        match self.form {
            BodyFormat::Json | BodyFormat::WithVariables => self.value(),
            BodyFormat::Unstated | BodyFormat::Yaml | BodyFormat::Enclosed => {
                let tree = tree(&self.text)
                    .map_err(|error| self.not_yaml("the document cannot be read", &error))?;
                self.bounded(tree)
            }
        }
    }

    fn bounded(&self, tree: serde_json::Value) -> Result<serde_json::Value, ApiProblem> {
        if depth(&tree) > DEPTH {
            return Err(self.unreadable(too_deep()));
        }
        Ok(tree)
    }

    /// Rejects documents that are nested too deeply or expand too far, whatever their kind.
    fn check_bounds(&self) -> Result<(), ApiProblem> {
        match tree(&self.text) {
            Err(error) if is_too_deep(&error) || over_budget(&error).is_some() => {
                Err(self.not_yaml("the document cannot be read", &error))
            }
            Ok(tree) => check_rules(&self.bounded(tree)?),
            // The later parser reports other errors with their place.
            Err(_) => Ok(()),
        }
    }

    /// A problem: `what` was found, and why.
    fn not_yaml(&self, what: &str, error: &serde_saphyr::Error) -> ApiProblem {
        if is_too_deep(error) {
            return self.unreadable(too_deep());
        }
        let why = over_budget(error).unwrap_or_else(|| error.to_string());
        self.unreadable(format!("{what}: {why}"))
    }

    /// 400 for an unreadable document; 422 if it is within a document that was read.
    fn unreadable(&self, detail: String) -> ApiProblem {
        if self.form == BodyFormat::Enclosed {
            return ApiProblem::invalid_at("/document", detail);
        }
        ApiProblem::malformed(detail.clone()).with_errors(vec![ProblemDetail::at("", detail)])
    }
}

/// Rules need a thousand times their text size while they are parsed, so their number is checked first.
fn check_rules(profile: &serde_json::Value) -> Result<(), ApiProblem> {
    let families = |chaos: &serde_json::Value| {
        let lists = chaos.as_object().into_iter().flat_map(|one| one.values());
        let lengths = lists.filter_map(|list| Some(list.as_array()?.len()));
        lengths.sum::<usize>()
    };
    let rules = families(profile) + profile.get("chaos").map_or(0, families);
    DocumentLimits::default()
        .take(Limited::Rules, rules)
        .map_err(|over| ApiProblem::invalid_at("", over.to_string()))
}

fn too_deep() -> String {
    format!("the document is nested deeper than {DEPTH} levels")
}

/// The message of both parsers for a text that is nested too deeply.
const RECURSION: &str = "recursion limit exceeded";

/// Whether a text is rejected for its depth.
fn is_too_deep(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::Error as E;
    use serde_saphyr::budget::BudgetBreach;
    match error {
        E::AliasError { error, .. } => is_too_deep(error),
        E::Budget { breach, .. } => matches!(breach, BudgetBreach::Depth { .. }),
        other => other.to_string().starts_with(RECURSION),
    }
}

/// A YAML text as a value.
pub(crate) fn tree(text: &str) -> Result<serde_json::Value, serde_saphyr::Error> {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        max_documents: 1,
        max_aliases: ALIASES,
        max_nodes: PARTS,
        max_events: 4 * PARTS,
    };
    let alias_limits = serde_saphyr::alias_limits! {
        max_total_replayed_events: PARTS,
        max_alias_expansions_per_anchor: ALIASES,
    };
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: budget,
        alias_limits: alias_limits,
        // As the parsers of profiles and suites: `no` is a text.
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// The depth of a value; the parser has bounded it to about a hundred.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn not_json(error: &serde_json::Error) -> ApiProblem {
    if error.is_data() {
        let detail = format!("the document says something else than it may: {error}");
        return ApiProblem::invalid_at("", detail);
    }
    let detail = match error.to_string() {
        deep if deep.starts_with(RECURSION) => too_deep(),
        other => format!("the document is not JSON: {other}"),
    };
    ApiProblem::malformed(detail.clone()).with_errors(vec![ProblemDetail::at("", detail)])
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::stream;

    use super::*;

    #[test]
    fn words_of_old_yaml_are_words() {
        let read = tree("{name: y, negate: no, enabled: true}").expect("YAML");
        let expected = serde_json::json!({ "name": "y", "negate": "no", "enabled": true });
        assert_eq!(read, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
        let never = stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let request = Request::new(Body::from_stream(never));
        let problem = body(request).await.expect_err("nothing came");
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
    }
}
