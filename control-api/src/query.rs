//! Query parameters: an unknown, repeated or unreadable one is an error.

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;

use crate::problem::{ApiProblem, ProblemDetail};

/// The query of a request. Routes take its parameters; [`Params::finish`] rejects the rest.
#[derive(Debug)]
pub(crate) struct Params {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
    errors: Vec<ProblemDetail>,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiProblem> {
        let Query(given) = Query::try_from_uri(&parts.uri)
            .map_err(|error| ApiProblem::malformed(format!("the query cannot be read: {error}")))?;
        Ok(Self {
            given,
            known: Vec::new(),
            errors: Vec::new(),
        })
    }
}

impl Params {
    /// The parameter `name`, if it is given.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let mut values = self.given.extract_if(.., |(given, _)| given == name);
        let first = values.next().map(|(_, value)| value);
        if values.next().is_some() {
            self.errors.push(ProblemDetail::parameter(
                name,
                format!("`{name}` is given more than once"),
            ));
        }
        first
    }

    /// The parameter `scope`, if it is given.
    pub(crate) fn scope(&mut self) -> Option<String> {
        let expected = "a scope: 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`, and no key";
        self.read("scope", expected, |name| {
            squall_proxy::is_scope_name(name).then(|| name.to_owned())
        })
    }

    /// The parameter `name`, as `read` parses it; `expected` describes valid values.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.take(name)?;
        let value = read(&text);
        if value.is_none() {
            let text: String = text.chars().take(40).collect();
            let detail = format!("`{name}` is `{text}`; it must be {expected}");
            self.errors.push(ProblemDetail::parameter(name, detail));
        }
        value
    }

    /// A boolean parameter: `true` or `false`. Default false.
    pub(crate) fn switch(&mut self, name: &'static str) -> bool {
        self.read(name, "true or false", |text| match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
        .unwrap_or(false)
    }

    /// Rejects the request if a parameter is unreadable or unknown.
    pub(crate) fn finish(mut self) -> Result<(), ApiProblem> {
        for (name, _) in &self.given {
            let known = self.known.join(", ");
            let name: String = name.chars().take(40).collect();
            let detail = if known.is_empty() {
                format!("there is no parameter `{name}` here")
            } else {
                format!("there is no parameter `{name}` here; there are {known}")
            };
            self.errors.push(ProblemDetail::parameter(name, detail));
        }
        match self.errors.first() {
            None => Ok(()),
            Some(first) => {
                Err(ApiProblem::malformed(first.detail.clone()).with_errors(self.errors))
            }
        }
    }
}
