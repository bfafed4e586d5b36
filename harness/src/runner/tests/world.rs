//! A fake proxy with a fake agent, for runs without sockets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use squall_journal::activation::ActivationRecord;
use squall_journal::record::SpentRecord;

use crate::agents::{AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError};
use crate::answer::AgentAnswer;
use crate::reach::{Late, Pending, Reach, ReachError, RequestedChaos, Rules, Seen};
use crate::trace::testing::{Sent, exchange};

/// Latency of every answer.
pub(super) const LATENCY: Duration = Duration::from_millis(7);

/// A fake proxy with a fake agent. The agent makes one tool call for each turn, and answers with the result.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that is wrong"
)]
pub(super) struct World {
    pub(super) state: Mutex<State>,
    /// The agent's calls do not use the proxy.
    pub(super) is_blind: bool,
    /// Its calls carry no scope.
    pub(super) is_plain: bool,
    /// Number of additional calls without a scope, after the run has left the shared scope.
    pub(super) strays: u64,
    /// One of its calls is in the shared scope while that is observed too.
    pub(super) is_partial: bool,
    /// It always reports success.
    pub(super) is_careless: bool,
    /// Only a rule that delays is applied to its calls.
    pub(super) is_delayed: bool,
    /// It fails on this prompt.
    pub(super) fails_at: Option<&'static str>,
    /// Number of truncated answers in this scenario.
    /// From the invocation with this key on it is dead: unreachable, hanging, or with empty answers.
    pub(super) dies: Option<(&'static str, Death)>,
    /// Another process accepts connections in its place, and never responds.
    pub(super) is_silent: bool,
    pub(super) resets_fail: bool,
    pub(super) is_down: bool,
    /// Squall shall start it, but the start fails.
    pub(super) does_not_start: bool,
    /// It waits in the middle of this scenario until it is released.
    pub(super) held_in: Option<&'static str>,
    pub(super) let_go: tokio::sync::Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    Gone,
    Hangs,
    Mute,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) is_dead: bool,
    pub(super) in_force: HashMap<String, (String, RequestedChaos)>,
    pub(super) seen: HashMap<String, Seen>,
    pub(super) begun: Vec<(String, RequestedChaos)>,
    pub(super) asked: u64,
    in_flight: usize,
    /// The most invocations that ran at the same time.
    pub(super) most_in_flight: usize,
    pub(super) resets: u64,
    pub(super) ended: Vec<String>,
    pub(super) closed: Vec<String>,
    pub(super) late: Late,
}

impl World {
    pub(super) fn state<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer(&self, invocation: &Invocation) -> Result<AgentAnswer, AskError> {
        if self.is_down {
            return Err(AskError::Unreachable {
                endpoint: "http://agent.test/".into(),
                tries: 3,
                why: "connection refused".into(),
            });
        }
        let scope = if self.is_plain {
            "default"
        } else {
            &invocation.place.scope
        };
        let key = self.state(|state| state.in_force[scope].1.key.clone());
        if let Some((from, death)) = self.dies
            && self.state(|state| {
                state.is_dead |= key.starts_with(from);
                state.is_dead
            })
        {
            return match death {
                Death::Gone => Err(AskError::Unreachable {
                    endpoint: "http://agent.test/".into(),
                    tries: 3,
                    why: "connection refused".into(),
                }),
                Death::Hangs => Ok(AgentAnswer {
                    error: Some("there was no answer within 30000 ms".into()),
                    ..AgentAnswer::default()
                }),
                Death::Mute => Ok(AgentAnswer::default()),
            };
        }
        if self.held_in.is_some_and(|held| key.starts_with(held)) {
            self.let_go.notified().await;
        }
        let is_faulted = self.state(|state| {
            state.asked += 1;
            let (activation, wanted) = state.in_force[scope].clone();
            let is_hit = wanted.rules != Rules::Nothing;
            let is_faulted = is_hit && !self.is_delayed;
            let mut sent = Sent::get("https://tool.test/").tool("search");
            if is_faulted {
                sent = sent.status(503).injected("error", serde_json::json!({}));
            } else if is_hit {
                sent = sent.injected("slow", serde_json::json!({}));
            }
            if let Some(rule) = sent.record.rules.first_mut() {
                rule.family = "tool_faults".into();
            }
            if !self.is_blind {
                let seen = state.seen.entry(activation.clone()).or_default();
                let mut made = exchange(seen.exchanges.len(), &sent);
                made.record.id = format!("{}-{activation}-{}", wanted.key, seen.exchanges.len());
                seen.exchanges.push(made);
            }
            if self.is_partial
                && let Some((shared, _)) = state.in_force.get("default")
            {
                let stray = Sent::get("https://stray.test/").tool("stray");
                let seen = state.seen.entry(shared.clone()).or_default();
                seen.exchanges.push(exchange(0, &stray));
            }
            is_faulted && !self.is_blind
        });
        let mut answer = AgentAnswer::of(if is_faulted && !self.is_careless {
            "The data is unavailable."
        } else {
            "All is well."
        });
        answer.latency = LATENCY;
        if self.is_silent {
            answer = AgentAnswer {
                error: Some("the answer broke off: connection closed".into()),
                broke_off: true,
                ..AgentAnswer::default()
            };
        }
        let prompt = invocation.prompt.text();
        if self.fails_at.is_some_and(|at| at == prompt) {
            answer.error = Some("status 500".into());
        }
        Ok(answer)
    }
}

impl Reach for World {
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        wanted: RequestedChaos,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>> {
        Box::pin(async move {
            let id = self.state(|state| {
                let id = format!("a{}", state.begun.len());
                state.begun.push((scope.to_owned(), wanted.clone()));
                state
                    .in_force
                    .insert(scope.to_owned(), (id.clone(), wanted));
                id
            });
            Ok(ActivationRecord {
                scope: scope.to_owned(),
                activation: Some(id),
                inherited: false,
                profile: "inline".into(),
                seed: 42,
                key: String::new(),
                observe: "bodies".into(),
                rules: 1,
                started_at: None,
                expires_at: None,
                ttl: None,
                ttl_from: None,
                suspended: None,
                spent: SpentRecord::default(),
            })
        })
    }

    fn end<'a>(&'a self, _: &'a str) -> Pending<'a, Result<bool, ReachError>> {
        Box::pin(async { Ok(true) })
    }

    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>> {
        Box::pin(async move {
            self.state(|state| state.ended.push(run.to_owned()));
            Ok(1)
        })
    }

    fn close<'a>(&'a self, activation: &'a str) -> Pending<'a, Result<(), ReachError>> {
        Box::pin(async move {
            self.state(|state| state.closed.push(activation.to_owned()));
            Ok(())
        })
    }

    fn late<'a>(&'a self, _: &'a str) -> Pending<'a, Result<Late, ReachError>> {
        Box::pin(async { Ok(self.state(|state| state.late.clone())) })
    }

    fn seen<'a>(
        &'a self,
        activation: &'a str,
        _: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>> {
        Box::pin(async move {
            let seen = self.state(|state| state.seen.get(activation).cloned());
            Ok(Seen {
                elsewhere: self.strays,
                ..seen.unwrap_or_default()
            })
        })
    }
}

impl Driver for World {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        _: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(async move {
            self.state(|state| {
                state.in_flight += 1;
                state.most_in_flight = state.most_in_flight.max(state.in_flight);
            });
            // Yields, so that invocations in several slots interleave.
            tokio::task::yield_now().await;
            let answer = self.answer(invocation).await;
            self.state(|state| state.in_flight -= 1);
            answer
        })
    }

    fn reset<'a>(&'a self, _: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(async {
            self.state(|state| state.resets += 1);
            if self.does_not_start {
                return Err(ResetError::NotThere(AskError::NotStarted {
                    program: "serve".into(),
                    why: "it ended with exit status: 4: boom".into(),
                }));
            }
            if self.resets_fail {
                return Err(ResetError::Failed {
                    by: "magic".into(),
                    why: "none left".into(),
                });
            }
            Ok(())
        })
    }
}
