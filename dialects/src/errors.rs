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
//! | `indent`, `prefix`, `suffix` | spaces a level of JSON (without: all on one line, 0: so with a space after each colon), and what is around the body |
//! | `html_safe` | `true`: `&`, `<` and `>` in JSON are escaped |
//! | `event`, `exception` | the name of the event, or exception, in a stream |
//! | any other | a value with this name |
//!
//! Strings are templates: `{model}` stands for a value, `{uuid draw 0}` for the result of a function. A
//! header, member or item with an absent value is left out, and so is a text of which a part is
//! absent, unless that is marked: `{model?}`. A string that is one placeholder and nothing else has the
//! value's type: a number, an object, `null`.
//!
//! | value of the exchange | |
//! |---|---|
//! | `draw`, `account` | seeds of irregular figures: another for each exchange, the same for one agent |
//! | `model`, `status`, `input_tokens`, `api_version` | as the request or the error has it, else the file's value of this name |
//! | `asked` | the model that the request names, or absent |
//! | `masked` | the request's key, all but its ends in stars |
//! | `reason` | the status's reason phrase, else the file's |
//! | `retry_after` | the wait that the rule announces, or absent |
//! | `wait` | the same, or one second |
//! | `limit`, `used`, `requested`, `left` | figures of the rule's own limit, else the file's |
//! | `last.KEY` | a member of the event before the error |
//!
//! Functions stand before their arguments, which are numbers, names or functions. A *source* is `draw` or
//! `account`; a *place* tells apart the figures of one source.
//!
//! | function | result |
//! |---|---|
//! | `uuid SOURCE PLACE` | a random UUID |
//! | `hex SOURCE PLACE DIGITS` | hexadecimal digits, at most 16 |
//! | `letters SOURCE ALPHABET COUNT` | letters of an alphabet |
//! | `between FROM SOURCE PLACE SPAN` | a number from `FROM`, less than `SPAN` above it |
//! | `below MOST SOURCE PLACE SPAN STEP` | a number up to `MOST`, less than `SPAN` steps below it |
//! | `plus`, `max`, `min` | of two numbers; an absent one counts as 0 |
//! | `thousands NUMBER`, `text NUMBER` | `30,000`; a number as a string |
//! | `vendor NAME` | what is before the `/` of a model's name, else `OpenAI` |
//! | `refill LIMIT LEFT` | the wait until a limit per minute is whole again |
//! | `reset LIMIT LEFT` | the same; `wait` where nothing is left |
//! | `seconds`, `millis`, `ceil`, `go`, `protobuf`, `date` | a wait: in whole seconds or milliseconds, rounded up; rounded up to milliseconds; as Go and as protocol buffers write it; as the time when it is over (RFC 3339) |

mod functions;
mod rendering;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value as Json;

use crate::answer::Event;
use crate::model::ModelError;
use crate::stream::Made;
use crate::target::Target;
use rendering::{Form, Rendering};

/// What a synthetic error may mention of the exchange it answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorContext<'a> {
    /// What ids and other irregular figures are derived from: the exchange's own draw.
    pub draw: u64,
    /// What the names of the account are derived from: the same for all requests of one agent.
    pub account: u64,
    /// The credential of the request.
    pub credential: Option<Credential<'a>>,
    /// Where the request goes.
    pub target: Target<'a>,
    /// The model asked for, when the request was read.
    pub model: Option<&'a str>,
    /// Whether a stream was asked for; false when the request was not read.
    pub stream: bool,
    /// How many tokens the request holds, when it was read and the error mentions them
    /// ([`ModelError::counts_input`]).
    pub input_tokens: Option<u64>,
    /// The time since 1970. `None`: not known, so no date is mentioned.
    pub now: Option<Duration>,
}

/// The credential of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// `Authorization: Bearer`.
    Bearer(&'a str),
    /// A header of the provider's for its keys.
    Key(&'a str),
}

impl<'a> Credential<'a> {
    /// The credential among a request's headers; the provider's own header first.
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let keys = ["x-api-key", "api-key", "x-goog-api-key"];
        if let Some(key) = keys.into_iter().find_map(text) {
            return Some(Self::Key(key));
        }
        let (scheme, token) = text("authorization")?.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        is_bearer.then(|| Self::Bearer(token.trim()))
    }
}

/// Names the sort of credential, never its value.
impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer",
            Self::Key(_) => "Key",
        })
    }
}

/// A complete HTTP response as a provider would send it, but for `date` and `content-length`,
/// which belong to the sender.
#[derive(Debug, Clone, PartialEq)]
pub struct WireReply {
    /// Status.
    pub status: StatusCode,
    /// Headers, `content-type` included.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Conditions and values of a provider's own that its templates mention.
#[derive(Debug, Default)]
pub struct ErrorTerms {
    pub(crate) conditions: Vec<&'static str>,
    pub(crate) values: Vec<(&'static str, Json)>,
}

/// A provider's templates.
pub(crate) struct Templates(LazyLock<Json>);

macro_rules! templates {
    ($($name:ident: $file:literal,)*) => {
        $(
            pub(crate) static $name: Templates = Templates(LazyLock::new(|| {
                serde_json::from_str(include_str!(concat!("../errors/", $file)))
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

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Templates")
    }
}

impl Templates {
    /// The reply that reports an error instead of an answer.
    pub(crate) fn reply(
        &'static self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        terms: &ErrorTerms,
    ) -> WireReply {
        Rendering::new(&self.0, error, context, terms, Form::Reply).reply()
    }

    /// The event that reports an error in a stream behind `last`; `None`: the provider has none.
    pub(crate) fn event(
        &'static self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        terms: &ErrorTerms,
        last: Option<Event<'_>>,
    ) -> Option<Made> {
        Rendering::new(&self.0, error, context, terms, Form::Event(last)).event()
    }
}
