//! A tape in a scope: its lookups and their counts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Serialize;
use squall_journal::tape::{
    Given, Otherwise, Session, Tape, TapeQuestion, TapeResult, ToolResponse,
};

use super::key;
use crate::lock::lock;

/// How a tape is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayingOptions {
    /// What happens to a request without a recorded response. Default: it is rejected.
    pub on_miss: Otherwise,
    /// What happens to a request whose responses are all used. Default: it is rejected.
    pub on_exhausted: Otherwise,
    /// 0: responses come immediately; 1: with the recorded timing; 2: twice as fast. Default 0.
    pub speed: f64,
    /// Whether model calls go to their upstreams. Default false.
    pub live_models: bool,
}

impl Default for PlayingOptions {
    fn default() -> Self {
        Self {
            on_miss: Otherwise::Error,
            on_exhausted: Otherwise::Error,
            speed: 0.0,
            live_models: false,
        }
    }
}

/// Counts of a tape's lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered from the tape.
    pub served: u64,
    /// Not on the tape, or all responses used.
    pub missed: u64,
    /// Misses whose responses were all used.
    pub exhausted: u64,
    /// Sent upstream, including tunnels.
    pub dialled: u64,
    /// Responses on the tape.
    pub answers: u64,
    /// Unused responses.
    pub left: u64,
}

/// A tape that responds in a scope.
#[derive(Debug)]
pub struct Playing {
    source: String,
    options: PlayingOptions,
    tape: Mutex<(Tape, Counts)>,
    /// Authorities recorded over HTTP/2.
    http2: HashSet<String>,
}

/// The result of a lookup on a tape.
#[derive(Debug)]
pub(crate) enum Played {
    /// The response to the request.
    Answer(Arc<Given>),
    /// The response of the called tool.
    Tool(Arc<ToolResponse>),
    /// The request is rejected for this reason.
    Refused(TapeRefusal),
    /// The request goes to its upstream.
    Passes,
}

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TapeRefusal {
    pub(crate) exhausted: bool,
    pub(crate) why: String,
}

impl Playing {
    /// Prepares a session for playback. `options` override the session's own settings for misses;
    /// `source` is its reported origin.
    pub fn new(source: impl Into<String>, session: &Session, options: PlayingOptions) -> Arc<Self> {
        let http2 = session
            .exchanges
            .iter()
            .filter(|exchange| exchange.http2)
            .filter_map(|exchange| authority(exchange.matching.url.as_deref()?));
        Arc::new(Self {
            source: source.into(),
            options,
            tape: Mutex::new((Tape::new(session, &key::fingerprint), Counts::default())),
            http2: http2.collect(),
        })
    }

    /// The reported origin of the session.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How it is played.
    pub fn options(&self) -> PlayingOptions {
        self.options
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let (tape, counts) = &*self.tape();
        let (answers, left) = tape.answers();
        Counts {
            answers: answers as u64,
            left: left as u64,
            ..*counts
        }
    }

    /// The numbers of the used responses in the session.
    pub fn used(&self) -> Vec<usize> {
        self.tape().0.used().collect()
    }

    /// Whether the tape permits no dialling, except for live model calls.
    pub(crate) fn never_dials(&self) -> bool {
        let PlayingOptions {
            on_miss,
            on_exhausted,
            ..
        } = self.options;
        on_miss != Otherwise::Passthrough && on_exhausted != Otherwise::Passthrough
    }

    /// Whether the tape answers all model calls on a WebSocket.
    pub(crate) fn serves_sockets(&self) -> bool {
        self.never_dials() && !self.options.live_models
    }

    /// Whether this authority was recorded over HTTP/2.
    pub(crate) fn speaks_http2(&self, authority: &str) -> bool {
        self.http2.contains(authority)
    }

    /// Counts a request that goes upstream.
    pub(crate) fn dials(&self) {
        self.tape().1.dialled += 1;
    }

    /// The playback duration of a recorded duration.
    pub(crate) fn lasts(&self, recorded_ms: u64) -> Duration {
        if self.options.speed <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_millis(recorded_ms).div_f64(self.options.speed)
    }

    /// Looks up a request.
    pub(crate) fn ask(&self, question: &TapeQuestion<'_>) -> Played {
        let (tape, counts) = &mut *self.tape();
        let mut found = tape.ask(question);
        let is_missing = matches!(found, TapeResult::Missed(_) | TapeResult::Exhausted(_));
        if is_missing && self.options.on_miss == Otherwise::Nearest {
            found = tape.ask_nearest(question).unwrap_or(found);
        }
        let (otherwise, refusal) = match found {
            TapeResult::Answer(given) if given.answer.over_limit => {
                let why = "its recorded answer was longer than what is kept of one, and was cut";
                (self.options.on_miss, TapeRefusal::missed(why.to_owned()))
            }
            TapeResult::Answer(given) => {
                counts.served += 1;
                return Played::Answer(given);
            }
            TapeResult::Tool(response) => {
                counts.served += 1;
                return Played::Tool(response);
            }
            TapeResult::Missed(why) => (self.options.on_miss, TapeRefusal::missed(why)),
            TapeResult::Exhausted(why) => {
                counts.exhausted += 1;
                let exhausted = true;
                (self.options.on_exhausted, TapeRefusal { exhausted, why })
            }
        };
        counts.missed += 1;
        match otherwise {
            Otherwise::Error | Otherwise::Nearest => Played::Refused(refusal),
            Otherwise::Passthrough => Played::Passes,
        }
    }

    /// Counts a rejected request without a lookup.
    pub(crate) fn refuses(&self) {
        self.tape().1.missed += 1;
    }

    fn tape(&self) -> MutexGuard<'_, (Tape, Counts)> {
        lock(&self.tape)
    }
}

impl TapeRefusal {
    fn missed(why: String) -> Self {
        Self {
            exhausted: false,
            why,
        }
    }
}

fn authority(url: &str) -> Option<String> {
    let url = key::canonical(url);
    let (_, rest) = url.split_once("://")?;
    Some(rest.split('/').next().unwrap_or(rest).to_owned())
}
