//! How a route is called, in words and shapes.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::parameters::AfterName;
use crate::page::{Limit, Page};

/// The media type of most bodies.
pub(crate) const JSON: &str = "application/json";
/// The other form of documents.
pub(crate) const YAML: &str = "application/yaml";

/// Makes a schema, or the reference to one.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// How a route is called and what it answers. Its path, its method and who may call it are the table's.
pub(crate) struct Operation {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: Option<&'static str>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Vec<(&'static str, Shape)>,
    /// The body may be missing.
    pub(super) or_nothing: bool,
    /// A document that it takes.
    pub(super) example: Option<Value>,
    pub(super) answers: Vec<Answer>,
    pub(super) problems: BTreeSet<u16>,
}

/// A query parameter or a header; none is required.
pub(super) struct Parameter {
    pub(super) place: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
}

/// An answer that is no problem.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Vec<(&'static str, Shape)>,
    /// Names of headers, and what they say.
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

impl Operation {
    /// An operation of this id, unique and a name in client libraries, and what it does in a few words.
    pub(crate) fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            about: None,
            parameters: Vec::new(),
            body: Vec::new(),
            or_nothing: false,
            example: None,
            answers: Vec::new(),
            problems: BTreeSet::new(),
        }
    }

    /// Says more, in Markdown.
    #[must_use]
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self {
            about: Some(about),
            ..self
        }
    }

    /// Takes a query parameter.
    #[must_use]
    pub(crate) fn query<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.parameter::<T>("query", name, about)
    }

    /// Takes a header.
    #[must_use]
    pub(crate) fn header<T: JsonSchema>(self, name: &'static str, about: &'static str) -> Self {
        self.parameter::<T>("header", name, about)
    }

    fn parameter<T: JsonSchema>(
        mut self,
        place: &'static str,
        name: &'static str,
        about: &'static str,
    ) -> Self {
        self.parameters.push(Parameter {
            place,
            name,
            about,
            shape: SchemaGenerator::subschema_for::<T>,
        });
        self
    }

    /// Takes a document, as JSON or YAML.
    #[must_use]
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        self.takes_as::<T>(JSON).takes_as::<T>(YAML)
    }

    /// Takes a body of this media type.
    #[must_use]
    pub(crate) fn takes_as<T: JsonSchema>(mut self, media_type: &'static str) -> Self {
        self.body
            .push((media_type, SchemaGenerator::subschema_for::<T>));
        self.problems([413, 415, 422])
    }

    /// The document may be missing.
    #[must_use]
    pub(crate) fn or_nothing(self) -> Self {
        Self {
            or_nothing: true,
            ..self
        }
    }

    /// Takes this document, for one.
    #[must_use]
    pub(crate) fn example(self, document: Value) -> Self {
        Self {
            example: Some(document),
            ..self
        }
    }

    /// Answers with JSON.
    #[must_use]
    pub(crate) fn answers<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.empty(status, about).or_as::<T>(JSON)
    }

    /// Answers with a body of this media type.
    #[must_use]
    pub(crate) fn answers_as<T: JsonSchema>(
        self,
        status: u16,
        media_type: &'static str,
        about: &'static str,
    ) -> Self {
        self.empty(status, about).or_as::<T>(media_type)
    }

    /// Answers without a body.
    #[must_use]
    pub(crate) fn empty(mut self, status: u16, about: &'static str) -> Self {
        self.answers.push(Answer {
            status,
            about,
            content: Vec::new(),
            headers: Vec::new(),
        });
        self
    }

    /// The answer said last may have this form too.
    #[must_use]
    pub(crate) fn or_as<T: JsonSchema>(mut self, media_type: &'static str) -> Self {
        if let Some(last) = self.answers.last_mut() {
            last.content
                .push((media_type, SchemaGenerator::subschema_for::<T>));
        }
        self
    }

    /// The answer said last may carry a header.
    #[must_use]
    pub(crate) fn with(mut self, header: &'static str, about: &'static str) -> Self {
        if let Some(last) = self.answers.last_mut() {
            last.headers.push((header, about));
        }
        self
    }

    /// Answers with a list by name in pages: takes `limit` and `cursor`.
    #[must_use]
    pub(crate) fn pages<T: JsonSchema>(self, about: &'static str) -> Self {
        self.pages_by::<AfterName, T>(about)
    }

    /// The same with cursors of a form.
    #[must_use]
    pub(crate) fn pages_by<Cursor: JsonSchema, T: JsonSchema>(self, about: &'static str) -> Self {
        self.query::<Limit>("limit", "Entries of a page; 100 if absent")
            .query::<Cursor>("cursor", "`next_cursor` of the page before")
            .answers::<Page<T>>(200, about)
    }

    /// Edits what has versions: takes `If-Match` and `If-None-Match`.
    #[must_use]
    pub(crate) fn guarded(self) -> Self {
        self.header::<String>(
            "If-Match",
            "Only if this is the `ETag` of what is there; `*` for anything",
        )
        .header::<String>("If-None-Match", "`*`: only if nothing is there")
        .problems([412])
    }

    /// Asks the store, which may be away.
    #[must_use]
    pub(crate) fn asks_store(self) -> Self {
        self.problems([503])
    }

    /// May end in problems of these statuses. Those that any route may end in, those of a role, and those
    /// of a document that is taken need not be said.
    #[must_use]
    pub(crate) fn problems(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.problems.extend(statuses);
        self
    }
}
