//! Exchanges that are recorded, or answered from a tape.
//!
//! ```text
//! decide ─▶ wait, answer instead ─▶ play back ─┬─▶ judge, substitute, edit, shape ─▶ agent
//!                                              └─ not on the tape ─▶ refused, or on to the upstream
//! ```

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use squall_dialects::{Target, WireReply, mcp, media_type};
use squall_journal::record::Outcome;
use squall_journal::redact::REDACTED;
use squall_journal::tape::{Content, Data, Given, Piece, TapeQuestion, ToolResponse};
use squall_profiles::decide::Decision;
use squall_profiles::faults::editing::Step as EditStep;
use squall_profiles::faults::rpc_answer::{RpcChange, RpcEditor, RpcForm};
use squall_profiles::plan::{ToolAnswer, ToolSays};
use tokio::time::Instant;

use super::request_body::RequestBody;
use super::{Exchange, ScriptStep, Shortcut};
use crate::abort::Abort;
use crate::body::agent::AbortAfterFlush;
use crate::body::{self, AgentBody};
use crate::faults::{Ledger as _, answer, has_body};
use crate::problem::Problem;
use crate::tape::key::{self, BODY};
use crate::tape::{Played, Playing, TapeRefusal, played};
use crate::timer;

impl Exchange {
    /// Looks up the response on the scope's tape, if any. `None`: the request goes to its upstream.
    pub(super) async fn play_back(
        &mut self,
        request: &mut Request<RequestBody>,
        decision: &Decision,
    ) -> ScriptStep<Option<Response<AgentBody>>> {
        let Some(playing) = self.tape.clone() else {
            return Ok(None);
        };
        if let Some(socket) = &self.socket
            && playing.serves_sockets()
        {
            // Otherwise its calls are answered from the tape.
            return if socket.passes {
                Err(self.socket_not_on_tape(&playing))
            } else {
                Ok(None)
            };
        }
        // Boxed: few scopes play a tape.
        let played = Box::pin(self.play(&playing, request)).await?;
        if played.is_some() {
            for (verdict, _) in &decision.plan.request_edits {
                let why = "the answer comes from a tape: no upstream reads the request";
                self.log.bypassed(*verdict, why.to_owned());
            }
        }
        Ok(played)
    }

    async fn play(
        &mut self,
        playing: &Playing,
        request: &mut Request<RequestBody>,
    ) -> ScriptStep<Option<Response<AgentBody>>> {
        let began = Instant::now();
        let read = self.read_body(request, BODY).await?;
        let here = Instant::now();
        let body = request.body().read_whole();
        if let Some(body) = &body
            && self.classified.rpc_request().is_none()
            && self.classified.model().is_none()
        {
            self.learn(body.clone());
        }
        self.log.sent_upstream(&read);
        let (url, fingerprint) = self.key(request, body).await?;
        let played = self.ask(playing, &url, fingerprint);
        let latency = match &played {
            Played::Passes => {
                playing.dials();
                return Ok(None);
            }
            Played::Refused(refusal) => return Err(self.not_on_tape(refusal)),
            Played::Answer(given) => given.answer.latency_ms,
            Played::Tool(response) => response.latency_ms,
        };
        timer::sleep_until(began + playing.lasts(latency)).await;
        self.log.waited(here.elapsed());
        match played {
            Played::Passes | Played::Refused(_) => Ok(None),
            Played::Answer(given) => Ok(Some(self.recorded(&given, playing)?)),
            Played::Tool(response) => Ok(Some(self.tool_said(&response, request.headers())?)),
        }
    }

    /// The request's key on the tape, computed on another thread: a body may be long.
    async fn key(
        &self,
        request: &Request<RequestBody>,
        body: Option<Bytes>,
    ) -> Result<(String, u64), Abort> {
        let headers = request.headers().clone();
        let recorder = self.connection.worker.engine.recorder.clone();
        let rules = Arc::clone(self.rules.rules());
        let (method, url) = (self.method.clone(), self.target.url.as_str().to_owned());
        let key = move || {
            let redactor = recorder.redactor().and(rules.redactor());
            key::of(&redactor, &method, &url, &headers, body.as_ref())
        };
        let found = tokio::task::spawn_blocking(key).await;
        found.map_err(|error| Abort::close(format!("the request's key on the tape: {error}")))
    }

    fn ask(&self, playing: &Playing, url: &str, fingerprint: u64) -> Played {
        if playing.options().live_models && self.classified.dialect.is_some() {
            return Played::Passes;
        }
        // The tape has one response, so others of a batch would be lost.
        let several = self
            .classified
            .rpc_request()
            .is_some_and(|asked| asked.requests().count() > 1);
        playing.ask(&TapeQuestion {
            method: &self.method,
            url,
            fingerprint,
            tools: if several { &[] } else { &self.classified.tools },
            dialect: self.classified.dialect.map(squall_dialects::Dialect::name),
            model: self.classified.model(),
        })
    }

    /// Whether a tape answers all calls on the WebSocket that is opened, so that nothing is dialled.
    pub(super) fn tape_serves_socket(&self) -> bool {
        let is_served = self.socket.as_ref().is_some_and(|socket| !socket.passes);
        is_served && self.tape.as_ref().is_some_and(|tape| tape.serves_sockets())
    }

    /// Refuses a WebSocket of model calls that passes unread.
    fn socket_not_on_tape(&self, playing: &Playing) -> Shortcut {
        playing.refuses();
        let problem = Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "tape-miss",
            "Not on the tape",
            format!(
                "scope `{}` is answered from a tape, and `llm:` has `websocket: pass`: use HTTP, or `fault`",
                self.log.chaos().scope()
            ),
        );
        self.log.end(Outcome::Denied, Some(problem.detail.clone()));
        self.refused(&problem)
    }

    /// Reports that the tape has no response; nothing is dialled.
    fn not_on_tape(&self, refusal: &TapeRefusal) -> Shortcut {
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
        self.refused(&Problem::new(StatusCode::NOT_FOUND, slug, title, detail))
    }

    fn shown_url(&self) -> String {
        let mut url = self.target.url.as_str().to_owned();
        let redactor = self.connection.worker.engine.recorder.redactor();
        redactor.url(&mut url, 200);
        url
    }

    /// The recorded response.
    fn recorded(&self, given: &Given, playing: &Playing) -> Result<Response<AgentBody>, Abort> {
        let answer = &given.answer;
        let Some(status) = StatusCode::from_u16(answer.status)
            .ok()
            .filter(|_| answer.status != 0)
        else {
            return Err(self.without_answer());
        };
        let mut content = self.readdressed(given);
        let mut headers = headers(&answer.headers);
        if let Some((media_type, body)) = self.streamed(&content, &headers, status) {
            headers.insert(CONTENT_TYPE, media_type);
            content = Content::Body(Data(body.into()));
        }
        let is_whole = matches!(content, Content::Body(_)) && !answer.broken_off;
        if is_whole || !has_body(&self.method, status) {
            let reply = WireReply {
                status,
                headers,
                body: content.whole(),
            };
            return Ok(answer::respond(reply, &self.context()));
        }
        let body = played(&content, answer.broken_off, playing);
        let body = AbortAfterFlush::new(body, self.connection.agent().clone());
        let mut response = Response::new(body::boxed(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// A whole answer as a stream, if the request asks for one.
    fn streamed(
        &self,
        content: &Content,
        headers: &HeaderMap,
        status: StatusCode,
    ) -> Option<(HeaderValue, Vec<u8>)> {
        let is_json = matches!(
            media_type(headers).as_deref(),
            None | Some("application/json")
        );
        let streams = is_json && status.is_success() && self.classified.streams();
        let (Content::Body(body), true) = (content, streams) else {
            return None;
        };
        let target = Target::new(self.target.url.path_and_query());
        squall_dialects::streamed(self.classified.dialect?, target, &body.0)
    }

    /// Aborts the connection, because the recorded exchange had no response.
    fn without_answer(&self) -> Abort {
        let why = "there was no answer when it was recorded, and there is none now";
        self.log.end(Outcome::UpstreamError, Some(why.to_owned()));
        Abort::close(why)
    }

    /// The change that gives recorded MCP responses the ids of this request's calls; `None` if no
    /// change is needed.
    fn readdressing(&self, given: &Given) -> Option<RpcChange> {
        let now = self.classified.rpc_request()?.requests();
        let now = now.filter_map(|call| call.id.clone());
        let pairs: Vec<_> = given.calls.iter().cloned().zip(now).collect();
        (!pairs.is_empty()).then_some(RpcChange::AnswersTo(pairs))
    }

    /// The recorded MCP responses, with the ids of this request's calls.
    fn readdressed(&self, given: &Given) -> Content {
        let content = &given.answer.content;
        let Some(change) = self.readdressing(given) else {
            return content.clone();
        };
        let edited = |bytes: &Bytes, form: RpcForm| {
            let editor = RpcEditor::new(change.clone(), Vec::new());
            let edited = editor.in_form(form, bytes.len()).edit(bytes);
            let changed = edited.map(|edited| emitted(&edited.steps));
            Data(match changed {
                Ok(changed) if !changed.is_empty() => changed.into(),
                Ok(_) | Err(_) => bytes.clone(),
            })
        };
        match content {
            Content::Body(body) if given.is_of_events() => {
                Content::Body(edited(&body.0, RpcForm::Events))
            }
            Content::Body(body) => Content::Body(edited(&body.0, RpcForm::Json)),
            Content::Stream(pieces) => {
                let pieces = pieces.iter().map(|piece| Piece {
                    at_ms: piece.at_ms,
                    data: edited(&piece.data.0, RpcForm::Events),
                });
                Content::Stream(pieces.collect())
            }
        }
    }

    /// The session's tool response, as plain HTTP or MCP.
    fn tool_said(
        &self,
        response: &ToolResponse,
        request: &HeaderMap,
    ) -> ScriptStep<Response<AgentBody>> {
        let Some(status) = StatusCode::from_u16(response.status)
            .ok()
            .filter(|_| response.status != 0)
        else {
            return Err(self.without_answer().into());
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
        let plain = WireReply {
            status,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]),
            body: body.clone().into(),
        };
        let reply = match self.classified.rpc_call(None) {
            None => plain,
            Some(mut call) => {
                let asked = self.classified.rpc_request();
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
                        return Err(self.not_on_tape(&TapeRefusal {
                            exhausted: false,
                            why,
                        }));
                    }
                }
            }
        };
        Ok(answer::respond(reply, &self.context()))
    }
}

/// The bytes that the steps emit.
fn emitted(steps: &[EditStep]) -> Vec<u8> {
    let bytes = steps.iter().filter_map(|step| match step {
        EditStep::Emit(bytes) => Some(&bytes[..]),
        EditStep::Wait(_) | EditStep::End(_) | EditStep::Finish => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// Recorded headers to send, without those whose value was redacted.
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
