//! From raw values to typed ones, gathering every error on the way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::located::At;
use super::places::Places;
use super::scalar::Number;
use crate::dice::MILLION;
use crate::duration;
use crate::error::{self, Position, ProfileError};
use crate::glob::Glob;
use crate::limits::Limits;
use crate::pointer::Pointer;
use squall_journal::redact::Redactor;

/// Longest wait that can be written: a day. More is a slip of units.
const LONGEST_MS: f64 = 86_400_000.0;
/// Greatest number that a double holds exactly.
const GREATEST: f64 = 9_007_199_254_740_992.0;

/// Reads the values of one file. Methods give `None` for what is absent or wrong; what is wrong is
/// noted, so the caller may go on with its default.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) file: Arc<str>,
    /// The way to the map being read.
    pub(crate) pointer: Pointer,
    pub(crate) errors: Vec<ProfileError>,
    /// What rules keep to themselves, and errors too.
    pub(crate) redactor: Redactor,
    /// Ids that were given to rules, also to those that cannot be read.
    pub(crate) ids: HashSet<String>,
    /// Globs over words that were read, by what is written.
    pub(crate) globs: HashMap<String, Glob>,
    /// What the rest of the document may make of itself.
    pub(crate) limits: Limits,
    places: Places,
}

impl Reader {
    pub(crate) fn new(file: &str, redactor: Redactor, places: Places, limits: &Limits) -> Self {
        Self {
            file: file.into(),
            pointer: Pointer::default(),
            errors: Vec::new(),
            redactor,
            ids: HashSet::new(),
            globs: HashMap::new(),
            limits: limits.clone(),
            places,
        }
    }

    /// Where in the user's file something stands.
    pub(crate) fn place(&self, position: Position) -> Position {
        self.places.of(position)
    }

    /// Notes an error about a field of the map being read.
    pub(crate) fn error(&mut self, field: &str, position: Position, message: impl Into<String>) {
        self.placed_error(field, self.place(position), message);
    }

    /// The same, where the place is known already.
    pub(crate) fn placed_error(
        &mut self,
        field: &str,
        position: Position,
        message: impl Into<String>,
    ) {
        if error::is_full(&self.errors) {
            return;
        }
        let pointer = self.pointer.to(field);
        let file = self.file.to_string();
        let mut message = message.into();
        self.redactor.text(&mut message, usize::MAX);
        let error = ProfileError {
            file,
            position,
            pointer,
            message,
        };
        error::note(&mut self.errors, error);
    }

    /// Reads a map below the one being read.
    pub(crate) fn below<T>(&mut self, field: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.enter(field);
        let value = read(self);
        self.pointer.leave(before);
        value
    }

    /// A wait in milliseconds, fractions allowed, 0 to a day.
    pub(crate) fn millis(&mut self, field: &str, value: Option<&At<Number>>) -> Option<Duration> {
        self.within(
            field,
            value,
            0.0,
            LONGEST_MS,
            "milliseconds, 0 to 86400000 (a day)",
        )
        .map(|ms| Duration::from_micros(whole(ms * 1000.0)))
    }

    /// A wait in microseconds, 0 to a minute.
    pub(crate) fn micros(&mut self, field: &str, value: Option<&At<Number>>) -> Option<Duration> {
        self.within(
            field,
            value,
            0.0,
            60_000_000.0,
            "microseconds, 0 to 60000000 (a minute)",
        )
        .map(|us| Duration::from_micros(whole(us)))
    }

    /// A wait in seconds, fractions allowed, 0 to a day.
    pub(crate) fn seconds(&mut self, field: &str, value: Option<&At<Number>>) -> Option<Duration> {
        self.within(field, value, 0.0, 86_400.0, "seconds, 0 to 86400 (a day)")
            .map(|s| Duration::from_micros(whole(s * 1_000_000.0)))
    }

    /// A whole number of at least `least`, written as one.
    pub(crate) fn count(
        &mut self,
        field: &str,
        value: Option<&At<Number>>,
        least: u32,
    ) -> Option<u64> {
        let allowed = format!("whole numbers of at least {least}");
        let number = self.whole_number(field, value?, &allowed)?;
        self.within(field, value, f64::from(least), GREATEST, &allowed)?;
        Some(whole(number))
    }

    /// A share between 0 and 1, in parts per million.
    pub(crate) fn share(&mut self, field: &str, value: Option<&At<Number>>) -> Option<u32> {
        let found = value?;
        let share = found.value.value();
        if !(0.0..=1.0).contains(&share) {
            let message = format!(
                "`{field}: {}` is not between 0 and 1; write 0.25 for one in four",
                found.value
            );
            self.error(field, found.position, message);
            return None;
        }
        let millionths = whole((share * f64::from(MILLION)).round());
        Some(u32::try_from(millionths).expect("at most a million"))
    }

    /// A positive number, fractions allowed.
    pub(crate) fn positive(&mut self, field: &str, value: Option<&At<Number>>) -> Option<f64> {
        let found = value?;
        let number = found.value.value();
        if !(number > 0.0 && number <= 1e9) {
            let message = format!(
                "`{field}: {}`: a number above 0 is allowed, up to 1e9",
                found.value
            );
            self.error(field, found.position, message);
            return None;
        }
        Some(number)
    }

    /// A status an answer can have: `least` to 599.
    pub(crate) fn status(
        &mut self,
        field: &str,
        value: Option<&At<Number>>,
        least: u16,
    ) -> Option<StatusCode> {
        let allowed = format!("a status from {least} to 599");
        let number = self.whole_number(field, value?, &allowed)?;
        self.within(field, value, f64::from(least), 599.0, &allowed)?;
        let code = u16::try_from(whole(number)).ok()?;
        StatusCode::from_u16(code).ok()
    }

    /// A code of JSON-RPC's for errors, -32768 to -32000; `None`, and no error, for what is no
    /// negative number.
    pub(crate) fn protocol_code(&mut self, field: &str, value: Option<&At<Number>>) -> Option<i64> {
        let found = value.filter(|found| found.value.value() < 0.0)?;
        let allowed = "a status from 200 to 599, and for MCP -32768 to -32000";
        let number = self.whole_number(field, found, allowed)?;
        self.within(field, value, -32768.0, -32000.0, allowed)?;
        i64::try_from(whole(-number)).ok().map(|code| -code)
    }

    /// The number, if it is written as a whole one: `503.0` is a measure, and a status is none.
    fn whole_number(&mut self, field: &str, found: &At<Number>, allowed: &str) -> Option<f64> {
        let number = found.value.value();
        if matches!(found.value, Number::Whole(_)) {
            return Some(number);
        }
        let instead = if number.fract() == 0.0 && number.abs() <= GREATEST {
            format!("; write `{field}: {number}`")
        } else {
            String::new()
        };
        let message = format!("`{field}: {}`: allowed are {allowed}{instead}", found.value);
        self.error(field, found.position, message);
        None
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        field: &str,
        value: Option<&At<String>>,
        allowed: &[(&str, T)],
    ) -> Option<T> {
        let found = value?;
        let known = allowed.iter().find(|(word, _)| *word == found.value);
        if known.is_none() {
            let names = allowed.iter().map(|(word, _)| *word);
            let rest = error::allowed(&found.value, names);
            let message = format!("`{field}: {}` is unknown{rest}", found.value);
            self.error(field, found.position, message);
        }
        known.map(|(_, value)| *value)
    }

    /// A duration with its unit: `500ms`, `30s`, `5m`, `1h30m`.
    pub(crate) fn duration(&mut self, field: &str, value: Option<&At<String>>) -> Option<Duration> {
        let found = value?;
        let parsed = duration::parse(&found.value);
        if parsed.is_none() {
            let message = format!(
                "`{field}: {}` is no duration; write a number and its unit: 500ms, 30s, 5m or 1h30m",
                found.value
            );
            self.error(field, found.position, message);
        }
        parsed
    }

    fn within(
        &mut self,
        field: &str,
        value: Option<&At<Number>>,
        least: f64,
        most: f64,
        allowed: &str,
    ) -> Option<f64> {
        let found = value?;
        let number = found.value.value();
        if !(least..=most).contains(&number) {
            let message = format!("`{field}: {}`: allowed are {allowed}", found.value);
            self.error(field, found.position, message);
            return None;
        }
        Some(number)
    }
}

/// A number already known to be whole, non-negative and exact in a double.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have checked the range"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
