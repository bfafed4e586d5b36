//! Providers' errors, rendered from one template file for each provider: `dialects/errors/*.json`.
//!
//! A file contains `sources` (the provider's documentation of its errors), `headers` (named groups of headers),
//! `texts` (named values) and `errors`. The latter are layers: all that match are combined, and later layers
//! override earlier ones.
//!
//! | member of a layer | meaning |
//! |---|---|
//! | `for`, `except` | errors that it applies to, or not: modes of `llm_faults`, or `server_error_503`; absent: all |
//! | `when` | conditions that must all hold, see below |
//! | `status` | the status of the response |
//! | `headers` | groups of headers, in order |
//! | `body` | JSON or a text; `null`: the error is not reported in this form |
//! | `indent` | spaces per level of JSON; absent: on one line; 0: on one line with a space after each colon |
//! | `prefix`, `suffix` | texts around the body |
//! | `html_safe` | `true`: `&`, `<` and `>` in JSON are escaped |
//! | `event`, `exception` | the name of the event, or exception, in a stream |
//! | any other | a value with this name |
//!
//! | condition of `when` | it holds if |
//! |---|---|
//! | `reply`, `event` | the error is a whole response, or an event in a stream |
//! | `requests`, `tokens` | a rate limit counts requests, or tokens |
//! | `waits` | a rate limit announces a wait |
//! | `kept` | the limit is a rule's own |
//! | `too_large` | waiting cannot help |
//! | `bearer` | the credential of the request is a bearer token |
//! | any other | the provider defines it |
//!
//! Strings are templates: `{model}` is replaced by a value, `{uuid draw 0}` by the result of a function. A header,
//! member or item with an absent value is omitted. A text with an absent part is omitted too, unless the part is
//! optional: `{model?}`. A string that is exactly one placeholder has the type of the value: a number, an object,
//! `null`.
//!
//! | value of the exchange | |
//! |---|---|
//! | `draw`, `account` | seeds of random figures: one for each exchange, one for each agent |
//! | `model`, `status`, `input_tokens`, `api_version` | from the request or the error, else from the file |
//! | `asked` | the requested model, or absent |
//! | `masked` | the request's API key, masked except for its ends |
//! | `reason` | the status's reason phrase, else from the file |
//! | `retry_after` | the wait that the rule announces, or absent |
//! | `wait` | the same, else one second |
//! | `limit`, `used`, `requested`, `left` | figures of the rule's own limit, else from the file |
//! | `last.KEY` | a member of the event before the error |
//!
//! Functions precede their arguments, which are numbers, names or functions. A *source* is `draw` or `account`; a
//! *place* distinguishes the figures of one source.
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
//! | `seconds`, `millis` | a wait in whole seconds or milliseconds, rounded up |
//! | `ceil` | a wait, rounded up to milliseconds |
//! | `go`, `protobuf` | a wait in the format of Go or of protocol buffers |
//! | `date` | the time when a wait is over (RFC 3339) |

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
use crate::stream::SyntheticEvent;
use crate::target::Target;
use rendering::{Form, Rendering};

/// The facts of an exchange that a synthetic error may contain.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorContext<'a> {
    /// Source of ids and other random figures: the exchange's own draw.
    pub draw: u64,
    /// Source of the account's names: the same for all requests of one agent.
    pub account: u64,
    /// The credential of the request.
    pub credential: Option<Credential<'a>>,
    /// The target of the request.
    pub target: Target<'a>,
    /// The requested model, if the request was read.
    pub model: Option<&'a str>,
    /// Whether a stream was requested; false if the request was not read.
    pub stream: bool,
    /// The response that the request continues, if it was read.
    pub previous_response: Option<&'a str>,
    /// Whether the call is a message on a WebSocket.
    pub on_websocket: bool,
    /// Tokens of the request, if it was read and the error contains them ([`ModelError::counts_input`]).
    pub input_tokens: Option<u64>,
    /// The time since 1970. `None`: unknown, so the error contains no date.
    pub now: Option<Duration>,
}

/// The credential of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// `Authorization: Bearer`.
    Bearer(&'a str),
    /// The provider's own header for API keys.
    Key(&'a str),
}

impl<'a> Credential<'a> {
    /// The credential in a request's headers; the provider's own header has priority.
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

/// Prints the kind of the credential, never its value.
impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer",
            Self::Key(_) => "Key",
        })
    }
}

/// A complete HTTP response as the provider sends it, without `date` and `content-length`, which the sender adds.
#[derive(Debug, Clone, PartialEq)]
pub struct WireReply {
    /// Status.
    pub status: StatusCode,
    /// Headers, `content-type` included.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Conditions and values in a provider's own templates.
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
    /// The response that reports an error instead of an answer.
    pub(crate) fn reply(
        &'static self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        terms: &ErrorTerms,
    ) -> WireReply {
        Rendering::new(&self.0, error, context, terms, Form::Reply).reply()
    }

    /// The event that reports an error in a stream after `last`; `None`: the provider has none.
    pub(crate) fn event(
        &'static self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        terms: &ErrorTerms,
        last: Option<Event<'_>>,
    ) -> Option<SyntheticEvent> {
        Rendering::new(&self.0, error, context, terms, Form::Event(last)).event()
    }
}
