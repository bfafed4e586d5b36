//! The streams of MCP sessions: the GETs that open them, whose they are, and when they end.

use std::rc::Rc;

use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Response, StatusCode};
use squall_dialects::mcp;
use squall_profiles::facts::Kind;

use super::Exchange;
use crate::carry_out::body::AgentBody;
use crate::carry_out::flush::Breaking;
use crate::mcp_sessions::{Base, Key, Name, Party, Session, SessionStream, Sessions};

/// What a request without messages has to do with a session.
pub(super) enum Part {
    /// It opens a stream.
    Listens {
        party: Party,
        given: Option<String>,
        base: Base,
        resumed: bool,
    },
    /// It ends the session.
    Ends(Key),
}

impl Exchange {
    /// What a request without messages has to do with a session; `None`, mostly: nothing.
    pub(super) fn part(&self, headers: &HeaderMap) -> Option<Box<Part>> {
        if self.method == Method::DELETE && self.seen.is_mcp() {
            let name = Name::Given(session_name(headers)?);
            return Some(Box::new(Part::Ends((self.party(headers), name))));
        }
        if self.method != Method::GET || !self.seen.may_listen() {
            return None;
        }
        Some(Box::new(Part::Listens {
            party: self.party(headers),
            given: session_name(headers),
            base: Base {
                path: self.target.called().to_owned(),
                is_reverse: self.target.is_reverse(),
            },
            resumed: headers.contains_key("last-event-id"),
        }))
    }

    /// Takes a stream that was opened into its session.
    pub(super) fn take_part(
        &self,
        part: Option<Box<Part>>,
        answer: Response<AgentBody>,
    ) -> Response<AgentBody> {
        let sessions = self.sessions();
        let headers = answer.headers();
        match part.map(|part| *part) {
            None => answer,
            Some(Part::Ends(key)) => {
                if answer.status().is_success() {
                    sessions.end(&key);
                }
                answer
            }
            Some(Part::Listens { .. })
                if answer.status() != StatusCode::OK
                    || !is_events(headers)
                    || headers.contains_key(CONTENT_ENCODING) =>
            {
                answer
            }
            Some(Part::Listens {
                party,
                given: Some(name),
                resumed,
                ..
            }) => match sessions.attach((party, Name::Given(name))) {
                Some(attached) if may_change(headers, attached.session()) => self
                    .read_events(answer, |body, longest| {
                        SessionStream::listening(attached, resumed, body, longest)
                    }),
                Some(_) | None => answer,
            },
            // A stream that says beforehand how long it is waits for nobody.
            Some(Part::Listens { .. }) if headers.contains_key(CONTENT_LENGTH) => answer,
            Some(Part::Listens { party, base, .. }) => {
                let sessions = sessions.clone();
                let log = Rc::clone(&self.log);
                let is_mcp = Box::new(move || log.note(|note| note.kind = Kind::Mcp));
                self.read_events(answer, |body, longest| {
                    SessionStream::beginning(sessions, party, base, is_mcp, body, longest)
                })
            }
        }
    }

    /// Reads an answer's events as they pass.
    pub(super) fn read_events(
        &self,
        mut answer: Response<AgentBody>,
        stream: impl FnOnce(AgentBody, usize) -> SessionStream,
    ) -> Response<AgentBody> {
        let longest = self.connection.worker.engine.inspect.limit();
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        answer.headers_mut().remove(CONTENT_LENGTH);
        let agent = self.context().agent;
        // What was held of an event that broke off leaves before the break does.
        answer.map(|body| AgentBody::boxed(Breaking::new(stream(body, longest), agent)))
    }

    /// Whose sessions a request may be of.
    pub(super) fn party(&self, headers: &HeaderMap) -> Party {
        let credentials = headers.get(AUTHORIZATION);
        Party {
            origin: self.target.origin.clone(),
            scope: self.log.chaos().scope().clone(),
            credentials: credentials.map_or(0, |said| xxhash_rust::xxh3::xxh3_64(said.as_bytes())),
        }
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.connection.worker.engine.sessions
    }
}

/// Whether something may be changed in a stream: one of known length has that length for a promise,
/// and is left alone unless something is awaited in its session.
fn may_change(headers: &HeaderMap, session: &Session) -> bool {
    !headers.contains_key(CONTENT_LENGTH) || session.wants(true)
}

pub(super) fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

pub(super) fn session_name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(&mcp::SESSION)?.to_str().ok()?;
    Some(name.to_owned())
}
