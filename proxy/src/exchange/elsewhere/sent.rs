//! What becomes of answers that are awaited elsewhere once their POST is answered.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use squall_profiles::plan::{Plan, Reply, VerdictIndex};

use super::super::Exchange;
use super::super::listening::is_events;
use super::Elsewhere;
use crate::broken::Ledger as _;
use crate::carry_out::body::AgentBody;
use crate::carry_out::{answer, edit, has_body};
use crate::exchange_log::ExchangeLog;
use crate::mcp_sessions::{SessionStream, Told};

impl Exchange {
    /// The answer to a POST of which nothing goes upstream: its calls were taken. `None`: something
    /// does.
    pub(in crate::exchange) fn taken(
        &self,
        elsewhere: &mut Option<Box<Elsewhere>>,
    ) -> Option<Response<AgentBody>> {
        let elsewhere = elsewhere.as_mut()?;
        if !elsewhere.instead.as_ref()?.is_all {
            return None;
        }
        elsewhere.say(&self.log);
        elsewhere.is_kept = true;
        // As the reference server says it.
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        let accepted = Reply {
            status: StatusCode::ACCEPTED,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, text)]),
            body: Bytes::from_static(b"Accepted"),
        };
        Some(answer::respond(accepted, &self.context()))
    }

    /// The upstream has answered the POST itself with this status.
    pub(in crate::exchange) fn was_sent(
        &self,
        elsewhere: &mut Option<Box<Elsewhere>>,
        status: StatusCode,
    ) {
        let Some(elsewhere) = elsewhere.as_mut().filter(|it| !it.mostly_here) else {
            return;
        };
        if status.is_success() {
            elsewhere.say(&self.log);
            elsewhere.is_kept = true;
        } else {
            elsewhere.give_up(&format!(
                "the server did not take the call: it answered {status}"
            ));
        }
    }

    /// Finds out whether the answers come in the answer to the POST, of a session with a name.
    pub(in crate::exchange) fn meet(
        &self,
        elsewhere: Option<Box<Elsewhere>>,
        mut answer: Response<AgentBody>,
        plan: &mut Plan,
    ) -> Response<AgentBody> {
        let Some(mut elsewhere) = elsewhere.filter(|it| it.mostly_here) else {
            return answer;
        };
        let status = answer.status();
        let is_empty = !has_body(&self.method, status) || status == StatusCode::ACCEPTED;
        let passes =
            is_events(answer.headers()) && !answer.headers().contains_key(CONTENT_ENCODING);
        if !status.is_success() || !(is_empty || passes) {
            elsewhere.withdraw();
            return answer;
        }
        elsewhere.is_kept = true;
        let verdicts: Vec<VerdictIndex> = elsewhere.verdicts().collect();
        plan.edits
            .retain(|(verdict, _)| !verdicts.contains(verdict));
        if is_empty {
            return answer;
        }
        let session = Arc::clone(&elsewhere.session);
        let awaited = elsewhere.awaited.clone();
        if !verdicts.is_empty() {
            edit::drop_digests(answer.headers_mut());
        }
        self.read_events(answer, |body, longest| {
            SessionStream::answering(session, awaited, body, longest)
        })
    }
}

impl Elsewhere {
    /// Says what takes the place of answers.
    fn say(&mut self, log: &ExchangeLog) {
        let Some(instead) = &mut self.instead else {
            return;
        };
        match instead.says.take() {
            Some((says, teller)) => self.session.say(says, instead.verdict, teller, self.most),
            // The agent waits from here on.
            None => log.applied(instead.verdict),
        }
    }

    /// Nothing comes on the stream, and why.
    fn give_up(&mut self, why: &str) {
        self.is_kept = true;
        for answer in &self.awaited {
            self.session.forget(answer);
            answer.gives_up(why);
        }
        if let Some(instead) = &mut self.instead
            && let Some((_, teller)) = instead.says.take()
        {
            teller.tell([Told::Bypassed(instead.verdict, why.to_owned())]);
        }
    }

    /// The rules that change answers.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = VerdictIndex> {
        self.awaited.iter().flat_map(|answer| answer.verdicts())
    }

    /// The answers come in the answer to the POST, or others are awaited in their place.
    pub(super) fn withdraw(&mut self) {
        self.is_kept = true;
        for answer in &self.awaited {
            self.session.forget(answer);
            answer.teller.tell([Told::Withdrawn]);
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if !self.is_kept {
            self.give_up("the call did not reach the server");
        }
    }
}
