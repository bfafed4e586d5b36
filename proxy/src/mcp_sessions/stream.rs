//! A stream of events on its way to the agent, in which awaited answers are looked for.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use squall_dialects::mcp::{self, Call};
use squall_dialects::stream::{self, FrameKind, Framing, Splitter};
use squall_profiles::plan::VerdictIndex;
use tokio::time::Instant;

use super::awaited::{self, Awaited, Teller, Told};
use super::endpoint::{self, Base, Begins};
use super::session::{Says, Session};
use super::tail::{Tail, has_id};
use super::{Attached, Party, Sessions};
use crate::broken::Broken;
use crate::carry_out::body::AgentBody;
use crate::timer;

/// The body of a stream of events that belongs to a session, or may.
///
/// Bytes pass as they come while nothing is awaited. While something is, they pass event by event:
/// an answer that is awaited is changed, held back or left out, everything else is what it was.
pub(crate) struct SessionStream {
    body: AgentBody,
    part: Part,
    /// Longest event that is read, bytes.
    longest: usize,
    splitter: Option<Splitter>,
    /// Bytes that the splitter holds.
    inside: usize,
    /// The last bytes that came, as many as tell whether an event has ended.
    tail: Tail,
    /// Some event had an id: what follows it can be asked for again.
    had_id: bool,
    ready: VecDeque<Ready>,
    held: Vec<Held>,
    repeated: Vec<Repeated>,
    end: Option<End>,
}

/// Whose stream it is.
enum Part {
    /// Its first event will tell.
    Unknown(Box<Beginning>),
    /// Of a session. Of a GET with `Last-Event-ID`: what has come before may come again.
    Listening { attached: Attached, resumed: bool },
    /// The answer to a POST of a session.
    Answering {
        session: Arc<Session>,
        awaited: Vec<Arc<Awaited>>,
    },
    /// Of none: its bytes pass.
    None,
}

/// A stream that may turn out to be a session's.
struct Beginning {
    sessions: Sessions,
    party: Party,
    base: Base,
    bytes: Vec<u8>,
    /// Called when it turns out to begin a session.
    begins_one: Box<dyn FnOnce()>,
}

/// Bytes for the agent, and what is told once it has them.
struct Ready {
    bytes: Bytes,
    told: Vec<(Arc<Awaited>, Vec<Told>)>,
    said: Option<(Teller, VerdictIndex)>,
}

/// An event that is held back.
struct Held {
    until: Pin<Box<dyn Future<Output = ()>>>,
    event: Ready,
}

/// Notifications without end.
struct Repeated {
    call: Call,
    apart: Duration,
    count: u64,
    next: Pin<Box<dyn Future<Output = ()>>>,
}

enum End {
    Clean(Option<Frame<Bytes>>),
    Broken(Broken),
}

impl SessionStream {
    /// A stream that a GET is answered with.
    pub(crate) fn listening(
        attached: Attached,
        resumed: bool,
        body: AgentBody,
        longest: usize,
    ) -> Self {
        Self::new(Part::Listening { attached, resumed }, body, longest)
    }

    /// A stream that a GET is answered with that names no session: its first event may, and then
    /// `begins_one` is called.
    pub(crate) fn beginning(
        sessions: Sessions,
        party: Party,
        base: Base,
        begins_one: Box<dyn FnOnce()>,
        body: AgentBody,
        longest: usize,
    ) -> Self {
        let beginning = Beginning {
            sessions,
            party,
            base,
            bytes: Vec::new(),
            begins_one,
        };
        Self::new(Part::Unknown(Box::new(beginning)), body, longest)
    }

    /// A stream that a POST is answered with, in which the answers to its calls are awaited. If it
    /// ends without them, and in a way that the agent cannot ask for the rest, they are given up.
    pub(crate) fn answering(
        session: Arc<Session>,
        awaited: Vec<Arc<Awaited>>,
        body: AgentBody,
        longest: usize,
    ) -> Self {
        Self::new(Part::Answering { session, awaited }, body, longest)
    }

    fn new(part: Part, body: AgentBody, longest: usize) -> Self {
        Self {
            body,
            part,
            longest,
            splitter: None,
            inside: 0,
            tail: Tail::default(),
            had_id: false,
            ready: VecDeque::new(),
            held: Vec::new(),
            repeated: Vec::new(),
            end: None,
        }
    }

    fn session(&self) -> Option<&Arc<Session>> {
        match &self.part {
            Part::Listening { attached, .. } => Some(attached.session()),
            Part::Answering { session, .. } => Some(session),
            Part::Unknown(_) | Part::None => None,
        }
    }

    /// Whether answers that have come once may come again.
    fn resumed(&self) -> bool {
        matches!(self.part, Part::Listening { resumed: true, .. })
    }

    /// Whether events have to be told apart: some may change, or others go between them.
    fn reads(&self) -> bool {
        self.inside > 0
            || !self.held.is_empty()
            || !self.repeated.is_empty()
            || matches!(self.part, Part::Answering { .. })
            || self.session().is_some_and(|it| it.wants(self.resumed()))
    }

    /// Takes the next bytes of the upstream's.
    fn take(&mut self, bytes: Bytes) {
        self.begin(&bytes);
        self.tail.push(&bytes);
        if !self.reads() {
            self.splitter = None;
            return self.pass(bytes);
        }
        let longest = self.longest;
        let splitter = self
            .splitter
            .get_or_insert_with(|| Splitter::new(Framing::Sse, longest));
        let frames = splitter.push(&bytes);
        self.inside += bytes.len();
        for frame in frames {
            self.inside -= frame.bytes().len();
            self.event(frame);
        }
    }

    /// Reads the first event, while nobody knows whose stream it is.
    fn begin(&mut self, bytes: &[u8]) {
        let Part::Unknown(beginning) = &mut self.part else {
            return;
        };
        let room = endpoint::BEGINNING.saturating_sub(beginning.bytes.len());
        let read = &bytes[..room.min(bytes.len())];
        beginning.bytes.extend_from_slice(read);
        let begins = Begins::of(&beginning.bytes);
        if begins == Begins::NotYet {
            return;
        }
        let Part::Unknown(beginning) = std::mem::replace(&mut self.part, Part::None) else {
            return;
        };
        let Begins::Endpoint(reference) = begins else {
            return;
        };
        (beginning.begins_one)();
        let key = endpoint::resolve(&beginning.party, &beginning.base, &reference);
        if let Some(attached) = key.and_then(|key| beginning.sessions.attach(key)) {
            self.part = Part::Listening {
                attached,
                resumed: false,
            };
        }
    }

    fn pass(&mut self, bytes: Bytes) {
        self.ready.push_back(Ready::bytes(bytes));
    }

    /// Passes one event, as it is or as rules have it.
    fn event(&mut self, frame: stream::Frame) {
        let is_event = frame.kind() == FrameKind::Event;
        self.had_id |= is_event && has_id(frame.bytes());
        let data = frame.data().filter(|data| is_event && !data.is_empty());
        let carried = data.and_then(|data| {
            let session = self.session()?;
            // Of the answer to a POST another copy is kept.
            let remembers = matches!(self.part, Part::Listening { .. });
            awaited::carry_out(&data, remembers, |id| session.find(id, self.resumed()))
        });
        let Some(carried) = carried else {
            return self.pass(frame.into_bytes());
        };
        let as_it_came = frame.data();
        let bytes = carried.data.map(|data| match &as_it_came {
            Some(same) if same[..] == data[..] => frame.bytes().clone(),
            Some(_) | None => frame.with(None, &data),
        });
        let event = Ready {
            bytes: bytes.unwrap_or_default(),
            told: carried.told,
            said: None,
        };
        if carried.hold.is_zero() {
            self.ready.push_back(event);
        } else {
            let until = Box::pin(timer::sleep_until(Instant::now() + carried.hold));
            self.held.push(Held { until, event });
        }
    }

    /// Whether something of Squall's may stand here.
    fn is_between_events(&self) -> bool {
        self.inside == 0 && self.tail.is_between_events()
    }

    /// Gets ready what comes between two events, if its time has come.
    fn poll_between(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while at < self.held.len() {
            if self.held[at].until.as_mut().poll(cx).is_ready() {
                self.ready.push_back(self.held.remove(at).event);
            } else {
                at += 1;
            }
        }
        let session = match &self.part {
            Part::Listening { attached, .. } if !attached.session().is_resumable() => {
                Some(Arc::clone(attached.session()))
            }
            Part::Listening { .. } | Part::Answering { .. } | Part::Unknown(_) | Part::None => None,
        };
        while self.end.is_none()
            && let Some(saying) = session.as_ref().and_then(|it| it.next_to_say(cx.waker()))
        {
            let bytes = match saying.says {
                Says::Once(events) => events,
                Says::Progress(call, apart) => {
                    let first = mcp::event(&mcp::progress(&call, 1));
                    self.repeated.push(Repeated::after_the_first(call, apart));
                    first
                }
            };
            self.ready.push_back(Ready {
                bytes,
                told: Vec::new(),
                said: Some((saying.teller, saying.verdict)),
            });
        }
        for repeated in &mut self.repeated {
            if repeated.next.as_mut().poll(cx).is_ready() {
                let again = Ready::bytes(repeated.again());
                self.ready.push_back(again);
            }
        }
    }

    /// The upstream's stream has ended.
    fn ends(&mut self, end: End) {
        if let Some(mut splitter) = self.splitter.take() {
            for frame in splitter.finish() {
                self.pass(frame.into_bytes());
            }
            self.inside = 0;
        }
        if matches!(end, End::Broken(_)) {
            self.held.clear();
        }
        self.repeated.clear();
        self.end = Some(end);
    }

    /// Hands something on, and tells of it.
    fn hand_over(&mut self, ready: Ready) -> Bytes {
        for (answer, told) in ready.told {
            answer.teller.tell(told);
            if let Some(session) = self.session() {
                session.came(&answer);
            }
        }
        if let Some((teller, verdict)) = ready.said {
            teller.tell([Told::Applied(verdict)]);
        }
        ready.bytes
    }
}

impl Body for SessionStream {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            while let Some(ready) = this.ready.pop_front() {
                let bytes = this.hand_over(ready);
                if !bytes.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
            if this.is_between_events() || this.end.is_some() {
                this.poll_between(cx);
                if !this.ready.is_empty() {
                    continue;
                }
            }
            match &mut this.end {
                // What is held back is still the agent's.
                Some(_) if !this.held.is_empty() => return Poll::Pending,
                Some(End::Clean(trailers)) => return Poll::Ready(trailers.take().map(Ok)),
                Some(End::Broken(_)) => {
                    let end = this.end.replace(End::Clean(None));
                    return Poll::Ready(match end {
                        Some(End::Broken(broken)) => Some(Err(broken)),
                        Some(End::Clean(_)) | None => None,
                    });
                }
                None => {}
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => this.take(bytes),
                    Err(trailers) => this.ends(End::Clean(Some(trailers))),
                },
                None => this.ends(End::Clean(None)),
                Some(Err(broken)) => this.ends(End::Broken(broken)),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty()
            && self.held.is_empty()
            && self.inside == 0
            && match &self.end {
                Some(End::Clean(trailers)) => trailers.is_none(),
                Some(End::Broken(_)) => false,
                None => self.body.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        // How long it gets shows when its events have passed.
        SizeHint::new()
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let Part::Answering { session, awaited } = &self.part else {
            return;
        };
        // Without an id nothing of it can be asked for again.
        if !self.had_id {
            for answer in awaited {
                session.forget(answer);
                answer.gives_up("the answer holds none to the call");
            }
        }
    }
}

impl Ready {
    fn bytes(bytes: Bytes) -> Self {
        Self {
            bytes,
            told: Vec::new(),
            said: None,
        }
    }
}

impl Repeated {
    fn after_the_first(call: Call, apart: Duration) -> Self {
        Self {
            call,
            apart,
            count: 1,
            next: Box::pin(timer::sleep_until(Instant::now() + apart)),
        }
    }

    /// The next of them.
    fn again(&mut self) -> Bytes {
        self.count += 1;
        self.next = Box::pin(timer::sleep_until(Instant::now() + self.apart));
        mcp::event(&mcp::progress(&self.call, self.count))
    }
}
