//! A tape in a scope: what is asked of it, and what came of that.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// What becomes of a request that nothing was recorded of. Default: it is refused.
    pub on_miss: Otherwise,
    /// What becomes of a request all of whose answers were given. Default: it is refused.
    pub on_exhausted: Otherwise,
    /// 0: answers come at once; 1: as they were recorded; 2: twice as fast. Default 0.
    pub speed: f64,
}

impl Default for PlayingOptions {
    fn default() -> Self {
        Self {
            on_miss: Otherwise::Error,
            on_exhausted: Otherwise::Error,
            speed: 0.0,
        }
    }
}

/// What came of the requests that were asked of a tape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered from the tape.
    pub served: u64,
    /// Not on the tape, or not any more.
    pub missed: u64,
    /// Of those missed: all answers were given.
    pub exhausted: u64,
    /// Sent upstream, tunnels among them.
    pub dialled: u64,
    /// Answers on the tape.
    pub answers: u64,
    /// Answers that were not given yet.
    pub left: u64,
}

/// A tape that answers in a scope.
#[derive(Debug)]
pub struct Playing {
    source: String,
    options: PlayingOptions,
    tape: Mutex<Tape>,
    /// Authorities that were recorded over HTTP/2.
    http2: HashSet<String>,
    served: AtomicU64,
    missed: AtomicU64,
    exhausted: AtomicU64,
    dialled: AtomicU64,
}

/// What a tape does with a request.
#[derive(Debug)]
pub(crate) enum Played {
    /// It is answered so.
    Answer(Arc<Given>),
    /// The tool it calls says this.
    Tool(Arc<ToolResponse>),
    /// It is refused, because.
    Refused(TapeRefusal),
    /// It goes to its upstream.
    Passes,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TapeRefusal {
    pub(crate) exhausted: bool,
    pub(crate) why: String,
}

impl Playing {
    /// A session made ready to be played as `options` say, whatever it says itself of misses; `source`
    /// is where it comes from, for those who ask.
    pub fn new(source: impl Into<String>, session: &Session, options: PlayingOptions) -> Arc<Self> {
        let http2 = session
            .exchanges
            .iter()
            .filter(|exchange| exchange.http2)
            .filter_map(|exchange| authority(exchange.matching.url.as_deref()?));
        Arc::new(Self {
            source: source.into(),
            options,
            tape: Mutex::new(Tape::new(session, &key::fingerprint)),
            http2: http2.collect(),
            served: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            dialled: AtomicU64::new(0),
        })
    }

    /// Where it comes from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How it is played.
    pub fn options(&self) -> PlayingOptions {
        self.options
    }

    /// What came of it so far.
    pub fn counts(&self) -> Counts {
        let (answers, left) = self.tape().answers();
        let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            served: number(&self.served),
            missed: number(&self.missed),
            exhausted: number(&self.exhausted),
            dialled: number(&self.dialled),
            answers: answers as u64,
            left: left as u64,
        }
    }

    /// Whether nothing is ever dialled.
    pub(crate) fn never_dials(&self) -> bool {
        let PlayingOptions {
            on_miss,
            on_exhausted,
            ..
        } = self.options;
        on_miss == Otherwise::Error && on_exhausted == Otherwise::Error
    }

    /// Whether this authority was recorded over HTTP/2.
    pub(crate) fn speaks_http2(&self, authority: &str) -> bool {
        self.http2.contains(authority)
    }

    /// Something goes upstream all the same.
    pub(crate) fn dials(&self) {
        self.dialled.fetch_add(1, Ordering::Relaxed);
    }

    /// How long something that took `recorded` takes now.
    pub(crate) fn lasts(&self, recorded_ms: u64) -> Duration {
        if self.options.speed <= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_millis(recorded_ms).div_f64(self.options.speed)
    }

    /// What is done with a request.
    pub(crate) fn ask(&self, question: &TapeQuestion<'_>) -> Played {
        let found = self.tape().ask(question);
        let (otherwise, refusal) = match found {
            TapeResult::Answer(given) if given.answer.over_limit => {
                let why = "its recorded answer was longer than what is kept of one, and was cut";
                (self.options.on_miss, TapeRefusal::missed(why.to_owned()))
            }
            TapeResult::Answer(given) => {
                self.served.fetch_add(1, Ordering::Relaxed);
                return Played::Answer(given);
            }
            TapeResult::Tool(response) => {
                self.served.fetch_add(1, Ordering::Relaxed);
                return Played::Tool(response);
            }
            TapeResult::Missed(why) => (self.options.on_miss, TapeRefusal::missed(why)),
            TapeResult::Exhausted(why) => {
                self.exhausted.fetch_add(1, Ordering::Relaxed);
                let exhausted = true;
                (self.options.on_exhausted, TapeRefusal { exhausted, why })
            }
        };
        self.missed.fetch_add(1, Ordering::Relaxed);
        match otherwise {
            Otherwise::Error => Played::Refused(refusal),
            Otherwise::Passthrough => Played::Passes,
        }
    }

    /// Counts a request that could not even be asked for.
    pub(crate) fn refuses(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
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
