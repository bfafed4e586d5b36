//! What placeholders in templates stand for.
//!
//! | value of the exchange | |
//! |---|---|
//! | `draw`, `account` | what irregular figures derive from: another for each exchange, the same for one agent |
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
//! | function | gives |
//! |---|---|
//! | `uuid SOURCE PLACE` | a random UUID |
//! | `hex SOURCE PLACE DIGITS` | hexadecimal digits, at most 16 |
//! | `letters SOURCE ALPHABET COUNT` | letters of an alphabet |
//! | `ulid SOURCE PLACE` | 24 digits of Crockford's base 32 |
//! | `between FROM SOURCE PLACE SPAN` | a number from `FROM`, less than `SPAN` above it |
//! | `below MOST SOURCE PLACE SPAN STEP` | a number up to `MOST`, less than `SPAN` steps below it |
//! | `plus`, `max`, `min` | of two numbers; an absent one counts as 0 |
//! | `thousands NUMBER`, `text NUMBER` | `30,000`; a number as a string |
//! | `vendor NAME` | what stands before the `/` of a model's name, else `OpenAI` |
//! | `refill LIMIT LEFT` | the wait until a limit per minute is whole again |
//! | `reset LIMIT LEFT` | the same; `wait` where nothing is left |
//! | `seconds`, `millis`, `ceil`, `go`, `protobuf`, `date` | a wait: in whole seconds or milliseconds, rounded up; rounded up to milliseconds; as Go and as protocol buffers write it; as the time when it is over (RFC 3339) |

use std::time::Duration;

use http::StatusCode;

use super::rendering::{Rendering, Words};
use crate::dialect::{Credential, Event};
use crate::figures::{irregular, uuid};
use crate::json::Value;
use crate::model::{LimitFigures, ModelError};
use crate::waits::{whole_millis, whole_seconds};

/// The wait of a rate limit that announces none.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// The first place of letters.
const LETTERS: u64 = 16;

/// No value of the exchange has this name.
pub(super) struct NoSuchValue;

/// What a placeholder stands for.
#[derive(Debug, Clone)]
pub(crate) enum Term<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
    /// A duration, which functions write.
    Wait(Duration),
    /// A value of the provider's file, to be rendered.
    Node(Value<'static>),
    /// JSON of an event, to be copied.
    Raw(Value<'a>),
}

impl Term<'_> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(_) | Self::Wait(_) | Self::Node(_) | Self::Raw(_) => None,
        }
    }

    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text),
            Self::Raw(value) => value.as_str().map(std::borrow::Cow::into_owned),
            Self::Wait(_) | Self::Node(_) => None,
        }
    }

    fn wait(self) -> Option<Duration> {
        match self {
            Self::Wait(wait) => Some(wait),
            Self::Number(_) | Self::Text(_) | Self::Node(_) | Self::Raw(_) => None,
        }
    }
}

impl<'a> Rendering<'a> {
    /// The value of a placeholder's next words.
    pub(super) fn value(&self, words: &mut Words<'_>) -> Option<Term<'a>> {
        let word = words.next()?;
        if let Ok(number) = word.parse() {
            return Some(Term::Number(number));
        }
        let text = match word {
            "uuid" => uuid(self.number(words)?, self.number(words)?),
            "hex" => {
                let (figure, digits) = (self.figure(words)?, self.number(words)?.clamp(1, 16));
                let digits = usize::try_from(digits).ok()?;
                format!("{:0digits$x}", figure >> (64 - 4 * digits))
            }
            "letters" => {
                let source = self.number(words)?;
                let alphabet = self.value(words)?.text()?;
                let count = self.number(words)?;
                let letters = (0..count).map(|place| letter(source, place, alphabet.as_bytes()));
                letters.collect::<Option<_>>()?
            }
            "ulid" => ulid(self.number(words)?, self.number(words)?),
            "thousands" => thousands(self.number(words)?),
            "text" => self.number(words)?.to_string(),
            "vendor" => {
                let name = self.value(words)?.text()?;
                let vendor = name.split_once('/').map(|(vendor, _)| vendor);
                vendor.unwrap_or("OpenAI").to_owned()
            }
            "seconds" => whole_seconds(self.wait(words)?).to_string(),
            "millis" => whole_millis(self.wait(words)?).to_string(),
            "go" => go_duration(self.wait(words)?),
            "protobuf" => protobuf_duration(self.wait(words)?),
            "date" => date(self.given.context.now?.saturating_add(self.wait(words)?)),
            "refill" => {
                let wait = refill(self.number(words)?, self.number(words)?);
                return Some(Term::Wait(wait));
            }
            "reset" => {
                return match (self.number(words)?, self.number(words)?) {
                    (_, 0) => self.named("wait"),
                    (limit, left) => Some(Term::Wait(refill(limit, left))),
                };
            }
            "ceil" => {
                let millis = whole_millis(self.wait(words)?);
                let millis = u64::try_from(millis).unwrap_or(u64::MAX);
                return Some(Term::Wait(Duration::from_millis(millis)));
            }
            "between" => {
                let from = self.number(words)?;
                let number = from + self.figure(words)? % self.number(words)?.max(1);
                return Some(Term::Number(number));
            }
            "below" => {
                let most = self.number(words)?;
                let steps = self.figure(words)? % self.number(words)?.max(1);
                let less = steps * self.number(words)?;
                return Some(Term::Number(most.saturating_sub(less)));
            }
            "plus" | "max" | "min" => {
                let one = self.number(words).unwrap_or_default();
                let other = self.number(words).unwrap_or_default();
                return Some(Term::Number(match word {
                    "plus" => one.saturating_add(other),
                    "max" => one.max(other),
                    _ => one.min(other),
                }));
            }
            name => return self.named(name),
        };
        Some(Term::Text(text))
    }

    fn number(&self, words: &mut Words<'_>) -> Option<u64> {
        self.value(words)?.number()
    }

    fn wait(&self, words: &mut Words<'_>) -> Option<Duration> {
        self.value(words)?.wait()
    }

    /// The irregular figure of a source and a place.
    fn figure(&self, words: &mut Words<'_>) -> Option<u64> {
        Some(irregular(self.number(words)?, self.number(words)?))
    }

    /// A value of the exchange, if it has it.
    pub(super) fn of_exchange(&self, name: &str) -> Result<Option<Term<'a>>, NoSuchValue> {
        let (error, context) = (self.given.error, self.given.context);
        let (mut retry_after, mut figures, mut status) = (None, None, None);
        if let ModelError::RateLimit {
            retry_after: wait,
            figures: kept,
            ..
        } = error
        {
            (retry_after, figures) = (*wait, *kept);
        }
        if let ModelError::ServerError { status: named } = error {
            status = Some(*named);
        }
        let number = |number: Option<u64>| number.map(Term::Number);
        let text = |text: Option<&str>| text.map(|text| Term::Text(text.to_owned()));
        Ok(match name {
            "draw" => number(Some(context.draw)),
            "account" => number(Some(context.account)),
            "model" | "asked" => text(context.model),
            "input_tokens" => number(context.input_tokens),
            "api_version" => text(context.target.parameter("api-version")),
            "masked" => context.credential.map(|key| Term::Text(masked(key))),
            "status" => number(status.map(u64::from)),
            "reason" => {
                let status = status.and_then(|status| StatusCode::from_u16(status).ok());
                text(status.and_then(|status| status.canonical_reason()))
            }
            "retry_after" => retry_after.map(Term::Wait),
            "wait" => Some(Term::Wait(retry_after.unwrap_or(USUAL_WAIT))),
            "limit" => number(figures.map(|figures| figures.per_minute)),
            "used" => number(figures.map(|figures| figures.used)),
            "requested" => number(figures.map(|figures| figures.requested)),
            "left" => number(figures.map(LimitFigures::remaining)),
            name => {
                if let Some(key) = name.strip_prefix("last.") {
                    let last = self.given.last.map(Event::root);
                    last.and_then(|last| last.get(key)).map(Term::Raw)
                } else {
                    let own = self.given.values.iter().find(|(own, _)| *own == name);
                    Some(own.ok_or(NoSuchValue)?.1.clone())
                }
            }
        })
    }
}

fn letter(source: u64, place: u64, alphabet: &[u8]) -> Option<char> {
    let letters = u64::try_from(alphabet.len()).ok()?;
    let index = irregular(source, LETTERS + place).checked_rem(letters)?;
    alphabet
        .get(usize::try_from(index).ok()?)
        .copied()
        .map(char::from)
}

fn ulid(source: u64, place: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let digit = |digit: u64| {
        let at = (irregular(source, place + digit / 12) >> (5 * (digit % 12))) & 31;
        char::from(DIGITS[usize::try_from(at).unwrap_or_default()])
    };
    (0..24).map(digit).collect()
}

/// The key as OpenAI shows it: eight letters at its beginning and four at its end.
fn masked(credential: Credential<'_>) -> String {
    const SHOWN: [usize; 2] = [8, 4];
    let (Credential::Bearer(key) | Credential::Key(key)) = credential;
    let letters = key.chars().count();
    let [first, last] = SHOWN;
    let hides_all = letters <= first + last;
    let shown = |at: usize| !hides_all && (at < first || at >= letters - last);
    let letters = key.chars().enumerate();
    letters
        .map(|(at, letter)| if shown(at) { letter } else { '*' })
        .collect()
}

fn thousands(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        more => format!("{},{:03}", thousands(more), number % 1000),
    }
}

fn refill(limit: u64, left: u64) -> Duration {
    let missing = limit.saturating_sub(left);
    Duration::from_millis(missing.saturating_mul(60_000) / limit.max(1))
}

/// A fraction of a second as digits behind a point, without zeros at its end.
fn with_fraction(whole: u64, rest: u32, digits: usize) -> String {
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// `12ms`, `1.5s`, `6m0s`, `19h4m45s`.
fn go_duration(wait: Duration) -> String {
    let (seconds, nanos) = (wait.as_secs(), wait.subsec_nanos());
    let last = with_fraction(seconds % 60, nanos, 9);
    match (seconds / 3600, seconds / 60 % 60) {
        _ if seconds == 0 && nanos > 0 => {
            let millis = with_fraction(u64::from(nanos / 1_000_000), nanos % 1_000_000, 6);
            format!("{millis}ms")
        }
        (0, 0) => format!("{last}s"),
        (0, minutes) => format!("{minutes}m{last}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{last}s"),
    }
}

/// No digits behind the point or three, six or nine: `2s`, `1.426s`, `0.500s`.
fn protobuf_duration(wait: Duration) -> String {
    let (seconds, nanos) = (wait.as_secs(), wait.subsec_nanos());
    match nanos {
        0 => format!("{seconds}s"),
        _ if nanos % 1_000_000 == 0 => format!("{seconds}.{:03}s", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!("{seconds}.{:06}s", nanos / 1000),
        _ => format!("{seconds}.{nanos:09}s"),
    }
}

/// A time since 1970 as RFC 3339 writes it, in whole seconds: `2026-11-22T04:00:00Z`.
fn date(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years: leap days come last in each year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z",
        era * 400 + year_of_era + later,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}
