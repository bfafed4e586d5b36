//! Parses documents in requests, JSON or YAML by `Content-Type`, within limits of size and depth.

use squall_documents::VariableError;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::IgnoredAny;
use squall_documents::{At, DocumentReader, Fields, SourceText, Tree, ValueReader, Variables};
use squall_profiles::profile::{self, Profile};

use crate::problem::{ApiProblem, ProblemDetail};
use crate::trust::SentVariables;
use crate::trust::Trust;

/// Longest document, bytes.
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

/// Longest document that may hold recorded traffic, bytes: a replay session, a tape.
pub(crate) const LONG: usize = 16 << 20;

/// Longest request for a run, bytes: its sessions may hold whole recordings.
pub const LONGEST_RUN: usize = 64 << 20;

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
                "a document may have {MOST} bytes, a replay session and a tape {LONG}, a run {LONGEST_RUN}"
            )),
            _ => ApiProblem::malformed(format!("the body cannot be read: {detail}")),
        }
    })
}

impl RequestDocument {
    /// A document that the store has.
    pub(crate) fn stored(text: String) -> Self {
        let form = BodyFormat::Unstated;
        Self { text, form }
    }

    /// The document as a profile; errors call it `name`. Without values for its variables it may use those that
    /// `trust` lists.
    pub(crate) fn profile(&self, name: &str, trust: &Trust) -> Result<Profile, ApiProblem> {
        let profile = if self.form == BodyFormat::WithVariables {
            let (enclosed, sent) = self.sent()?;
            enclosed.tree()?;
            let lookup = |name: &str| sent.get(name).cloned().ok_or(VariableError::NotSet);
            profile::parse_file(name, &enclosed.text, Variables::From(&lookup))
        } else {
            self.tree()?;
            trust.variables(|variables| profile::parse_file(name, &self.text, variables))
        };
        profile.map_err(|errors| ApiProblem::profile(&errors))
    }

    /// The inner document, and the values sent with it.
    pub(crate) fn opened(self) -> Result<(Self, SentVariables), ApiProblem> {
        if self.form != BodyFormat::WithVariables {
            return Ok((self, SentVariables::default()));
        }
        let (document, sent) = self.sent()?;
        Ok((document, SentVariables::new(sent)))
    }

    fn sent(&self) -> Result<(Self, BTreeMap<String, String>), ApiProblem> {
        let sent: WithVariables =
            serde_json::from_str(&self.text).map_err(|error| not_json(&error))?;
        let document = Self {
            text: sent.document,
            form: BodyFormat::Enclosed,
        };
        Ok((document, sent.variables))
    }

    /// Whether values for variables were sent with it.
    pub(crate) fn has_variables(&self) -> bool {
        self.form == BodyFormat::WithVariables
    }

    /// The document's values with their places. A document sent as JSON must be JSON, although the YAML parser accepts
    /// more.
    pub(crate) fn tree(&self) -> Result<At<Tree>, ApiProblem> {
        if self.form == BodyFormat::WithVariables {
            return Err(ApiProblem::unsupported_type(
                "variables are sent with profiles and suites only; send application/json or application/yaml",
            ));
        }
        let tree = squall_documents::parse("", &self.text).map_err(|error| {
            let detail = ProblemDetail::located(&error).detail;
            if self.form == BodyFormat::Enclosed {
                return ApiProblem::invalid_at("/document", detail);
            }
            ApiProblem::malformed(detail.clone()).with_errors(vec![ProblemDetail::at("", detail)])
        })?;
        if self.form == BodyFormat::Json && !self.text.trim().is_empty() {
            serde_json::from_str::<IgnoredAny>(&self.text).map_err(|error| not_json(&error))?;
        }
        Ok(tree)
    }

    /// The fields of the document, as `read` reads them; or all errors with their places.
    pub(crate) fn fields<T>(
        &self,
        read: impl FnOnce(&mut Fields<'_, '_>) -> Option<T>,
    ) -> Result<T, ApiProblem> {
        let tree = self.tree()?;
        if !matches!(tree.value, Tree::Map(_) | Tree::Null) {
            // Not repeated: it may hold secrets.
            return Err(ApiProblem::invalid_at(
                "",
                "the document must be a map of fields",
            ));
        }
        let mut reader = DocumentReader::new(SourceText::new("", &self.text));
        let read = reader.read(&tree, |value| value.fields("a map of fields", read));
        let read = reader.finish(read).map(|(read, _)| read);
        read.map_err(|errors| {
            ApiProblem::invalid(errors.iter().map(ProblemDetail::pointed).collect())
        })
    }
}

/// Reads a text that `is_valid` accepts.
pub(crate) fn text(
    expected: &str,
    is_valid: impl FnOnce(&str) -> bool,
) -> impl FnOnce(&mut ValueReader<'_, '_>) -> Option<String> {
    move |value| {
        let text = value.exact_text()?.value;
        if is_valid(&text) {
            return Some(text);
        }
        let shown: String = text.chars().take(40).collect();
        value.error(format!("found `{shown}`, expected {expected}"));
        None
    }
}

/// A document of the store as JSON.
pub(crate) fn stored(text: &str) -> Result<serde_json::Value, ApiProblem> {
    let tree = squall_documents::parse("", text).map_err(|error| {
        ApiProblem::internal(format!("the stored document cannot be read: {error}"))
    })?;
    Ok(tree.value.to_json())
}

fn not_json(error: &serde_json::Error) -> ApiProblem {
    if error.is_data() {
        let detail = format!("the document says something else than it may: {error}");
        return ApiProblem::invalid_at("", detail);
    }
    let detail = format!("the document is not JSON: {error}");
    ApiProblem::malformed(detail.clone()).with_errors(vec![ProblemDetail::at("", detail)])
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
        let never = stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let request = Request::new(Body::from_stream(never));
        let problem = body(request).await.expect_err("nothing came");
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
    }
}
