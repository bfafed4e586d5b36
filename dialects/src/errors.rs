//! Providers' errors, rendered from one file of templates for each provider: `dialects/errors/*.json`.
//!
//! A file holds `sources` (where the provider documents its errors), `headers` (named groups of headers),
//! `texts` (named values) and `errors`: layers, of which all that match are laid on top of each other,
//! later ones over earlier ones.
//!
//! | member of a layer | meaning |
//! |---|---|
//! | `for`, `except` | names of errors that it is for, or is not for: the modes of `llm_faults`, and `server_error_503` for a status; without: every error |
//! | `when` | conditions that must all hold: `reply` or `event` (in a stream), `requests` or `tokens` (what a rate limit counts), `waits` (it announces a wait), `kept` (it is a rule's own), `too_large` (no wait helps), `bearer` (the request's credential is a bearer token), and the provider's own |
//! | `status` | the status of the reply |
//! | `headers` | groups of headers, in order |
//! | `body` | JSON, or a text; `null`: nothing reports the error there |
//! | `indent`, `prefix`, `suffix` | spaces a level of JSON (without: all on one line, 0: so with a space after each colon), and what stands around the body |
//! | `html_safe` | `true`: `&`, `<` and `>` in JSON are escaped |
//! | `event`, `exception` | the name of the event, or exception, in a stream |
//! | any other | a value with this name |
//!
//! Strings are templates: `{model}` stands for a value, `{uuid draw 0}` for what a function gives (see
//! [`functions`]). A header, member or item with an absent value is left out, and so is a text of
//! which a part is absent, unless that is marked: `{model?}`. A string that is one placeholder and nothing
//! else has the value's type: a number, an object, `null`.

mod functions;
mod rendering;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::dialect::{ErrorContext, Event, WireReply};
use crate::json::Document;
use crate::model::ModelError;
use crate::stream::Made;
pub(crate) use functions::Term;
use rendering::{Form, Rendering};

/// A provider's templates.
pub(crate) struct Templates(LazyLock<Document<'static>>);

macro_rules! templates {
    ($($name:ident: $file:literal,)*) => {
        $(
            pub(crate) static $name: Templates = Templates(LazyLock::new(|| {
                Document::parse(include_bytes!(concat!("../errors/", $file)))
                    .expect("a test reads every file")
            }));
        )*

        /// The templates of every provider.
        #[cfg(test)]
        static ALL: &[(&str, &Templates)] = &[$(($file, &$name),)*];
    };
}

templates! {
    ANTHROPIC: "anthropic.json",
    AZURE: "azure.json",
    BEDROCK: "bedrock.json",
    GEMINI: "gemini.json",
    GROQ: "groq.json",
    MISTRAL: "mistral.json",
    OLLAMA: "ollama.json",
    OPENAI: "openai.json",
    OPENROUTER: "openrouter.json",
}

/// What an error is rendered from.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// The error.
    pub(crate) error: &'a ModelError,
    /// What it may mention of the exchange.
    pub(crate) context: &'a ErrorContext<'a>,
    /// The provider's own conditions that hold.
    pub(crate) conditions: &'a [&'static str],
    /// The provider's own values.
    pub(crate) values: &'a [(&'static str, Term<'a>)],
    /// The event of a stream before the error, `last.KEY` in templates.
    pub(crate) last: Option<Event<'a>>,
}

impl<'a> Given<'a> {
    /// With nothing of the provider's own.
    pub(crate) fn new(error: &'a ModelError, context: &'a ErrorContext<'a>) -> Self {
        Self {
            error,
            context,
            conditions: &[],
            values: &[],
            last: None,
        }
    }
}

impl Templates {
    /// The reply that reports an error instead of an answer.
    pub(crate) fn reply(&'static self, given: Given<'_>) -> WireReply {
        Rendering::new(&self.0, given, Form::Reply).reply()
    }

    /// The event that reports an error in a stream; `None`: the provider has none.
    pub(crate) fn event(&'static self, given: Given<'_>) -> Option<Made> {
        Rendering::new(&self.0, given, Form::Event).event()
    }
}
