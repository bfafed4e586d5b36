//! Reads documents that are maps of fields, and reports all errors at once, each with its place.

use serde_json::{Map, Value};
use squall_documents::did_you_mean;

use crate::problem::ProblemDetail;

/// The fields of a document, or of a map in one, and the errors so far.
pub(crate) struct BodyFields<'d> {
    /// Pointer to the map; empty for the whole document.
    at: &'static str,
    members: Option<&'d Map<String, Value>>,
    errors: Vec<ProblemDetail>,
}

impl<'d> BodyFields<'d> {
    /// The fields of a document, which may have these; `example` is a valid one.
    pub(crate) fn of(
        document: &'d Value,
        known: &[&str],
        example: &str,
    ) -> Result<Self, Vec<ProblemDetail>> {
        let members = document.as_object().ok_or_else(|| {
            let detail = format!("the document must be an object, like {example}");
            vec![ProblemDetail::at("", detail)]
        })?;
        Ok(Self::at("", Some(members), known))
    }

    /// The fields of the map at this pointer (a slash and a name); empty if it is absent.
    pub(crate) fn within(&mut self, at: &'static str, known: &[&str]) -> Self {
        let name = at.trim_start_matches('/');
        Self::at(
            at,
            self.read(name, "a map of fields", Value::as_object),
            known,
        )
    }

    fn at(at: &'static str, members: Option<&'d Map<String, Value>>, known: &[&str]) -> Self {
        let names = members.into_iter().flat_map(|members| members.keys());
        let unknown = names.filter(|name| !known.contains(&name.as_str()));
        let errors = unknown.map(|name| {
            let shown: String = name.chars().take(40).collect();
            let rest = match did_you_mean(name, known.iter().copied()) {
                unlike if unlike.is_empty() => format!("; there are {}", known.join(", ")),
                near => near,
            };
            let detail = format!("unknown field `{shown}`{rest}");
            let escaped = name.replace('~', "~0").replace('/', "~1");
            ProblemDetail::at(format!("{at}/{escaped}"), detail)
        });
        Self {
            at,
            members,
            errors: errors.collect(),
        }
    }

    /// A field that is given; `null` counts as absent.
    pub(crate) fn given(&self, name: &str) -> Option<&'d Value> {
        let value = self.members?.get(name);
        value.filter(|value| !value.is_null())
    }

    /// A field as `read` parses it; `expected` describes valid values. `None` if it is absent or invalid.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.given(name)?;
        let read = read(value);
        if read.is_none() {
            let shown: String = value.to_string().chars().take(40).collect();
            self.wrong(name, format!("`{name}` is {shown}; it must be {expected}"));
        }
        read
    }

    /// The same for a required field.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Option<T> {
        if self.given(name).is_none() {
            self.wrong(name, format!("`{name}` is missing; it must be {expected}"));
        }
        self.read(name, expected, read)
    }

    /// Adds an error of a field; of the whole map for an empty `name`.
    pub(crate) fn wrong(&mut self, name: &str, detail: impl Into<String>) {
        let slash = if name.is_empty() { "" } else { "/" };
        let pointer = format!("{}{slash}{name}", self.at);
        self.errors.push(ProblemDetail::at(pointer, detail));
    }

    /// Adds errors.
    pub(crate) fn add(&mut self, errors: impl IntoIterator<Item = ProblemDetail>) {
        self.errors.extend(errors);
    }

    /// All errors.
    pub(crate) fn into_errors(self) -> Vec<ProblemDetail> {
        self.errors
    }

    /// The value, unless there are errors.
    pub(crate) fn finish<T>(self, read: Option<T>) -> Result<T, Vec<ProblemDetail>> {
        match read {
            Some(read) if self.errors.is_empty() => Ok(read),
            _ => Err(self.errors),
        }
    }
}

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
