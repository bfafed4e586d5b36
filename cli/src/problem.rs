//! Problem details of RFC 9457: error responses of the control API.

use std::fmt;

use serde::Deserialize;

/// An error response.
#[derive(Debug, Deserialize)]
pub(crate) struct ProblemResponse {
    /// HTTP status.
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    errors: Vec<ProblemEntry>,
}

/// An error in a document that was sent.
#[derive(Debug, Deserialize)]
struct ProblemEntry {
    /// JSON pointer into that document.
    #[serde(default)]
    pointer: String,
    #[serde(default)]
    detail: String,
}

impl ProblemResponse {
    /// Parses a problem; any other body becomes its detail, cut to 300 characters.
    pub(crate) fn read(status: reqwest::StatusCode, body: &[u8]) -> Self {
        let mut problem = serde_json::from_slice(body).unwrap_or_else(|_| Self {
            status: 0,
            r#type: String::new(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            detail: String::from_utf8_lossy(body)
                .trim()
                .chars()
                .take(300)
                .collect(),
            errors: Vec::new(),
        });
        problem.status = status.as_u16();
        problem
    }

    /// The errors, one a line, each with its place in the user's file; `None` if `place` does not know a pointer.
    pub(crate) fn placed(&self, place: impl Fn(&str) -> Option<String>) -> Option<String> {
        let line =
            |error: &ProblemEntry| Some(format!("{}: {}", place(&error.pointer)?, error.detail));
        let lines: Option<Vec<_>> = self.errors.iter().map(line).collect();
        lines
            .filter(|lines| !lines.is_empty())
            .map(|lines| lines.join("\n"))
    }

    /// Whether the response comes from Squall's proxy instead of its control API.
    pub(crate) fn is_the_proxys(&self) -> bool {
        ["no-route", "credentials-required"]
            .iter()
            .any(|slug| self.r#type.strip_prefix("urn:squall:problem:") == Some(slug))
    }
}

impl fmt::Display for ProblemResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.detail.is_empty() {
            &self.title
        } else {
            &self.detail
        };
        write!(f, "{what} ({})", self.status)?;
        if self.status == 401 {
            f.write_str("; pass a token with `--token` or SQUALL_TOKEN")?;
        }
        for error in self.errors.iter().filter(|error| error.detail != *what) {
            write!(f, "\n  ")?;
            if !error.pointer.is_empty() {
                write!(f, "{}: ", error.pointer)?;
            }
            f.write_str(&error.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProblemResponse {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_shown_with_its_errors_and_their_pointers() {
        for (status, body, shown) in [
            (
                404,
                r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no profile `x`"}"#,
                "there is no profile `x` (404)",
            ),
            (
                422,
                r#"{"title":"Invalid","errors":[{"pointer":"/chaos","detail":"unknown field"}]}"#,
                "Invalid (422)\n  /chaos: unknown field",
            ),
            (
                401,
                "",
                "Unauthorized (401); pass a token with `--token` or SQUALL_TOKEN",
            ),
            (502, "bad gateway\n", "bad gateway (502)"),
        ] {
            let status = reqwest::StatusCode::from_u16(status).expect("a status");
            assert_eq!(
                ProblemResponse::read(status, body.as_bytes()).to_string(),
                shown
            );
        }
    }
}
