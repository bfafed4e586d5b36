//! Exchanges that are recorded, or answered from a tape.
//!
//! ```text
//! decide ─▶ wait, answer instead ─▶ play back ─┬─▶ judge, substitute, edit, shape ─▶ agent
//!                                              └─ not on the tape ─▶ refused, or on to the upstream
//! ```

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use squall_dialects::{Target, mcp};
use squall_journal::record::Outcome;
use squall_journal::redact::REDACTED;
use squall_journal::tape::{Content, Data, Given, Piece, Question, ToolResponse};
use squall_profiles::activation::Observe;
use squall_profiles::faults::llm_stream::Step;
use squall_profiles::faults::mcp_answer::{Change, Form, McpEditor};
use squall_profiles::plan::{Reply, ToolAnswer, ToolSays};
use tokio::time::Instant;

use super::Exchange;
use crate::broken::Broken;
use crate::carry_out::body::{self, AgentBody};
use crate::carry_out::flush::Breaking;
use crate::carry_out::{answer, has_body};
use crate::observed::Observed;
use crate::problem::Problem;
use crate::recorder::Capture;
use crate::request_body::RequestBody;
use crate::tape::key::{self, BODY};
use crate::tape::{Played, Playing, played};
use crate::timer;

/// Bytes of a body whose key on a tape is found at once.
const SHORT: usize = 32 << 10;

/// What came of asking the tape.
pub(super) enum FromTape {
    /// The agent is answered so; rules go on from there.
    Answer(Response<AgentBody>),
    /// It is refused.
    Refused(Problem),
}

impl Exchange {
    /// Looks at what concerns the scope beside what the journal reads; whether a tape answers.
    pub(super) fn look_closer(&mut self, request: &Request<Incoming>) -> bool {
        let observe = self.log.chaos().observe();
        if observe != Observe::Headers {
            self.observe();
        }
        let tapes = self.connection.worker.engine.chaos.tapes();
        let recordings = tapes.recordings(self.log.chaos().scope());
        let observed = observe == Observe::Bodies;
        if observed || !recordings.is_empty() {
            let head = (
                request.method(),
                self.target.url.as_str(),
                request.version(),
                request.headers(),
            );
            let capture = Capture::new(recordings, observed, tapes.room(), head);
            self.log.capture(capture, self.version);
        }
        self.tape = tapes.playing(self.log.chaos().scope());
        self.tape.is_some()
    }

    /// The way of an exchange of a scope that plays a tape.
    pub(super) async fn go_by_tape(
        &mut self,
        request: Request<Incoming>,
    ) -> Result<Response<Observed>, Broken> {
        let (mut request, decision) = self.decide(request).await?;
        if let Some(decision) = decision {
            return self.under_rules(request, *decision).await;
        }
        match self.play(&mut request).await? {
            None => self.pass(request).await,
            Some(FromTape::Refused(problem)) => {
                Ok(self.connection.problem(&problem, Some(&self.log)))
            }
            Some(FromTape::Answer(answer)) => {
                self.log.answer_head(answer.status(), answer.headers());
                Ok(self.observed(answer))
            }
        }
    }

    /// Asks the tape, if there is one. `None`: the request goes to its upstream.
    pub(super) async fn play(
        &mut self,
        request: &mut Request<RequestBody>,
    ) -> Result<Option<FromTape>, Broken> {
        let Some(playing) = self.tape.clone() else {
            return Ok(None);
        };
        let began = Instant::now();
        let read = self.read_body(request, BODY).await?;
        let here = Instant::now();
        let body = request.body().read_whole();
        if let Some(body) = &body
            && self.seen.asked().is_none()
            && self.seen.model().is_none()
        {
            self.learn(body.clone());
        }
        self.log.sent_upstream(&read);
        let (url, fingerprint) = self.key(request, body).await?;
        let played = match self.ask(&playing, &url, fingerprint) {
            Played::Passes => {
                playing.dials();
                return Ok(None);
            }
            Played::Refused(refusal) => return Ok(Some(self.refuse(&refusal))),
            Played::Answer(given) => Ok(given),
            Played::Tool(response) => Err(response),
        };
        let latency = match &played {
            Ok(given) => given.answer.latency_ms,
            Err(response) => response.latency_ms,
        };
        timer::sleep_until(began + playing.lasts(latency)).await;
        self.log.waited(here.elapsed());
        match played {
            Ok(given) => self.recorded(&given, &playing),
            Err(response) => self.tool_said(&response, request.headers()),
        }
        .map(Some)
    }

    /// By what the tape knows the request. What would keep this thread from others for long goes to another one.
    async fn key(
        &self,
        request: &Request<RequestBody>,
        body: Option<Bytes>,
    ) -> Result<(String, u64), Broken> {
        let headers = request.headers().clone();
        // What is compressed may be long.
        let is_short = !headers.contains_key(CONTENT_ENCODING)
            && (body.as_ref())
                .is_none_or(|body| body.len() <= SHORT && !body.starts_with(b"\x1f\x8b"));
        let recorder = self.connection.worker.engine.recorder.clone();
        let rules = Arc::clone(self.rules.rules());
        let (method, url) = (self.method.clone(), self.target.url.as_str().to_owned());
        let key = move || {
            let redactor = recorder.redactor().and(rules.redactor());
            key::of(&redactor, &method, &url, &headers, body.as_ref())
        };
        if is_short {
            return Ok(key());
        }
        let found = tokio::task::spawn_blocking(key).await;
        found.map_err(|error| Broken::close(format!("the request's key on the tape: {error}")))
    }

    fn ask(&self, playing: &Playing, url: &str, fingerprint: u64) -> Played {
        // Of several calls in one request, one answer would be lost.
        let several = self
            .seen
            .asked()
            .is_some_and(|asked| asked.requests().count() > 1);
        playing.ask(&Question {
            method: &self.method,
            url,
            fingerprint,
            tools: if several { &[] } else { &self.seen.tools },
            dialect: self.seen.dialect.map(squall_dialects::Dialect::name),
            model: self.seen.model(),
        })
    }

    /// Nothing was recorded that answers this, and nothing is dialled.
    fn refuse(&self, refusal: &crate::tape::Refusal) -> FromTape {
        let (slug, title) = if refusal.exhausted {
            ("tape-exhausted", "All recorded answers were given")
        } else {
            ("tape-miss", "Not on the tape")
        };
        let detail = format!(
            "{} {} is answered from a tape in scope `{}`: {}; record it, or put the tape with `{}: \
             passthrough`",
            self.method,
            self.shown_url(),
            self.log.chaos().scope(),
            refusal.why,
            if refusal.exhausted {
                "on_exhausted"
            } else {
                "on_miss"
            },
        );
        self.log.end(Outcome::Denied, Some(detail.clone()));
        FromTape::Refused(Problem::new(StatusCode::NOT_FOUND, slug, title, detail))
    }

    fn shown_url(&self) -> String {
        let mut url = self.target.url.as_str().to_owned();
        let redactor = self.connection.worker.engine.recorder.redactor();
        redactor.url(&mut url, 200);
        url
    }

    /// The recorded answer again.
    fn recorded(&self, given: &Given, playing: &Playing) -> Result<FromTape, Broken> {
        let answer = &given.answer;
        let Some(status) = StatusCode::from_u16(answer.status)
            .ok()
            .filter(|_| answer.status != 0)
        else {
            return Err(self.without_answer());
        };
        let content = self.readdressed(given);
        let headers = headers(&answer.headers);
        let is_whole = matches!(content, Content::Body(_)) && !answer.broken_off;
        if is_whole || !has_body(&self.method, status) {
            let reply = Reply {
                status,
                headers,
                body: content.whole(),
            };
            return Ok(FromTape::Answer(answer::respond(reply, &self.context())));
        }
        let body = played(&content, answer.broken_off, playing);
        let body = Breaking::new(body, self.context().agent);
        let mut response = Response::new(body::boxed(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(FromTape::Answer(response))
    }

    /// The connection ends where there was no answer.
    fn without_answer(&self) -> Broken {
        let why = "there was no answer when it was recorded, and there is none now";
        self.log.end(Outcome::UpstreamError, Some(why.to_owned()));
        Broken::close(why)
    }

    /// What makes the answers to MCP calls answers to those of this request; `None`: there is nothing
    /// to make.
    fn readdressing(&self, given: &Given) -> Option<Change> {
        let now = self.seen.asked()?.requests();
        let now = now.filter_map(|call| call.id.clone());
        let pairs: Vec<_> = given.calls.iter().cloned().zip(now).collect();
        (!pairs.is_empty()).then_some(Change::AnswersTo(pairs))
    }

    /// The answers to MCP calls, under the ids that this request gave them.
    fn readdressed(&self, given: &Given) -> Content {
        let content = &given.answer.content;
        let Some(change) = self.readdressing(given) else {
            return content.clone();
        };
        let edited = |bytes: &Bytes, form: Form| {
            let mut editor = McpEditor::new(change.clone(), Vec::new(), form, bytes.len());
            let mut steps = editor.push(bytes);
            steps.extend(editor.finish());
            let changed = emitted(&steps);
            let is_edited = editor.untouched_because().is_none() && !changed.is_empty();
            Data(if is_edited {
                changed.into()
            } else {
                bytes.clone()
            })
        };
        match content {
            Content::Body(body) if given.is_of_events() => {
                Content::Body(edited(&body.0, Form::Events))
            }
            Content::Body(body) => Content::Body(edited(&body.0, Form::Json)),
            Content::Stream(pieces) => {
                let pieces = pieces.iter().map(|piece| Piece {
                    at_ms: piece.at_ms,
                    data: edited(&piece.data.0, Form::Events),
                });
                Content::Stream(pieces.collect())
            }
        }
    }

    /// What a tool of the session said, as plain HTTP or MCP has it.
    fn tool_said(&self, response: &ToolResponse, request: &HeaderMap) -> Result<FromTape, Broken> {
        let Some(status) = StatusCode::from_u16(response.status)
            .ok()
            .filter(|_| response.status != 0)
        else {
            return Err(self.without_answer());
        };
        let (body, is_json) = match &response.response {
            serde_json::Value::Null => (String::new(), false),
            serde_json::Value::String(text) => {
                let is_json = text.starts_with(['{', '['])
                    && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                (text.clone(), is_json)
            }
            other => (other.to_string(), true),
        };
        let media_type = if is_json {
            "application/json"
        } else {
            "text/plain; charset=utf-8"
        };
        let plain = Reply {
            status,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]),
            body: body.clone().into(),
        };
        let reply = match self.seen.mcp_call(None) {
            None => plain,
            Some(mut call) => {
                let asked = self.seen.asked();
                call.meant =
                    asked.map_or_else(Vec::new, |asked| asked.requests().cloned().collect());
                let says = if status.is_success() {
                    ToolSays::Text(body)
                } else {
                    ToolSays::Failure(Some(body).filter(|body| !body.is_empty()))
                };
                let target = Target::new(self.target.url.path_and_query());
                let made = if mcp::replies_out_of_band(target, request) {
                    let why = "no tool response is given to a call whose reply arrives on the \
                               session's event stream";
                    Err(why.to_owned())
                } else {
                    call.answer(&ToolAnswer { plain, says })
                };
                match made {
                    Ok(reply) => reply,
                    Err(why) => {
                        return Ok(self.refuse(&crate::tape::Refusal {
                            exhausted: false,
                            why,
                        }));
                    }
                }
            }
        };
        Ok(FromTape::Answer(answer::respond(reply, &self.context())))
    }
}

/// The bytes that steps emit.
fn emitted(steps: &[Step]) -> Vec<u8> {
    let bytes = steps.iter().filter_map(|step| match step {
        Step::Emit(bytes) => Some(&bytes[..]),
        Step::Wait(_) | Step::End(_) | Step::Finish => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// Recorded headers as they are sent; of those that held a secret nothing is left to send.
fn headers(recorded: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(recorded.len());
    for (name, value) in recorded.iter().filter(|(_, value)| value != REDACTED) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// The tape that answers in a scope, if any does.
pub(crate) fn tape_of(
    chaos: &crate::chaos::Chaos,
    scope: &crate::chaos::ScopeChaos,
) -> Option<Arc<Playing>> {
    (scope.reads() == crate::chaos::Reads::More)
        .then(|| chaos.tapes().playing(scope.scope()))
        .flatten()
}
