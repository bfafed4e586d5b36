//! Responses that arrive slowly or pause.

use std::time::Duration;

use super::events::{EventChange, ParsedEvent};
use super::{AnsweredCall, Step, duration_at, too_short};

/// A stream with slow tokens.
#[derive(Debug)]
pub(super) struct Slowing {
    /// Delay before the first token, until it arrives.
    first: Option<Duration>,
    tokens_per_second: Option<f64>,
    touched: bool,
}

impl Slowing {
    pub(super) fn new(first: Duration, tokens_per_second: Option<f64>) -> Self {
        Self {
            first: Some(first),
            tokens_per_second,
            touched: false,
        }
    }
}

impl EventChange for Slowing {
    /// Delays an event with tokens.
    fn event(&mut self, event: &ParsedEvent<'_>, _call: &AnsweredCall, steps: &mut Vec<Step>) {
        let wait = match self.first.take_if(|_| event.speaks()) {
            Some(first) => first,
            None => duration_at(event.tokens(), self.tokens_per_second),
        };
        if !wait.is_zero() {
            steps.push(Step::Wait(wait));
            self.touched = true;
        }
        steps.push(event.pass());
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, tokens: u64) -> String {
        if tokens == 0 {
            too_short(0, 0)
        } else {
            "the pace asks for no wait".to_owned()
        }
    }
}

/// A stream that pauses after a number of tokens, then continues.
#[derive(Debug)]
pub(super) struct Stalling {
    after_tokens: u64,
    wait: Duration,
    passed: u64,
    touched: bool,
}

impl Stalling {
    pub(super) fn new(after_tokens: u64, wait: Duration) -> Self {
        Self {
            after_tokens,
            wait,
            passed: 0,
            touched: false,
        }
    }
}

impl EventChange for Stalling {
    /// Pauses before the first event beyond the limit.
    fn event(&mut self, event: &ParsedEvent<'_>, _call: &AnsweredCall, steps: &mut Vec<Step>) {
        self.passed = self.passed.saturating_add(event.tokens());
        if !self.touched && event.speaks() && self.passed > self.after_tokens {
            steps.push(Step::Wait(self.wait));
            self.touched = true;
        }
        steps.push(event.pass());
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, tokens: u64) -> String {
        too_short(tokens, self.after_tokens.saturating_add(1))
    }
}
