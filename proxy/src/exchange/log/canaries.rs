//! Canaries of one exchange: those that its rules plant, and those that its request contains.

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue};
use squall_journal::record::Place;
use squall_profiles::canary::{Found, Search};
use squall_profiles::facts::Kind;
use squall_profiles::plan::{Planting, VerdictIndex};
use squall_profiles::rule::Rule;

use super::ExchangeLog;
use crate::egress::BodySearch;
use crate::headers::SCOPE;
use crate::metrics::Sink;
use crate::recorder::{CanaryNote, CanaryOrigin};
use squall_dialects::codec::Coding;

/// Most canaries recorded for one exchange.
const CANARIES: usize = 64;

impl ExchangeLog {
    /// Whether the scope has planted canaries, so that requests are searched.
    pub(crate) fn looks_for_canaries(&self) -> bool {
        self.chaos.planted().any()
    }

    /// Searches URL and headers of a request for planted canaries.
    pub(crate) fn leaves(&self, url: &str, headers: &HeaderMap) {
        if !self.looks_for_canaries() {
            return;
        }
        for found in Search::all(url.as_bytes()) {
            self.left(found, Place::Url);
        }
        if let Ok(coding @ Some(_)) = Coding::of(headers) {
            self.taps().search = Some(Box::new(BodySearch::new(coding)));
        }
        for (name, value) in headers {
            // Squall does not forward the scope name, and the URL normally contains the host.
            let is_told = *name == HOST && value.to_str().is_ok_and(|host| url.contains(host));
            if *name != SCOPE && *name != PROXY_AUTHORIZATION && !is_told {
                self.leaves_in_field(name, value);
            }
        }
    }

    /// Searches the trailers of a request for planted canaries.
    pub(crate) fn leaves_in_trailers(&self, trailers: &HeaderMap) {
        if self.looks_for_canaries() {
            for (name, value) in trailers {
                self.leaves_in_field(name, value);
            }
        }
    }

    fn leaves_in_field(&self, name: &HeaderName, value: &HeaderValue) {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            for found in Search::all(part) {
                self.left(found, Place::Header);
            }
        }
    }

    /// The body repeats tool results without a model call, so it is not searched.
    pub(crate) fn has_history_for_body(&self) {
        if self.looks_for_canaries() {
            self.taps().search = Some(Box::new(BodySearch::none()));
        }
    }

    /// Searches the next body bytes for planted canaries. A model call is not searched, because it
    /// may repeat tool results.
    pub(super) fn look_in_body(&self, bytes: &[u8]) {
        let kind = self.note.borrow().as_ref().map(|note| note.kind);
        if kind.is_none_or(|kind| kind == Kind::Llm) {
            return;
        }
        let mut taps = self.taps();
        let search = taps
            .search
            .get_or_insert_with(|| Box::new(BodySearch::new(None)));
        search.push(bytes, |found| self.left(found, Place::Body));
    }

    /// Records a canary in the request, if another exchange planted it.
    fn left(&self, found: Found, place: Place) {
        let Some(origin) = self.chaos.planted().origin(found.canary) else {
            return;
        };
        self.note(|note| {
            let canary = CanaryNote {
                canary: found.canary,
                origin,
                left: Some((place, found.encoding)),
            };
            if canary.origin.exchange != note.id
                && note.canaries.len() < CANARIES
                && !note.canaries.contains(&canary)
            {
                note.canaries.push(canary);
            }
        });
    }

    /// Records the canaries of an applied rule; call it before the agent can receive them.
    pub(super) fn plant(&self, by: VerdictIndex, rule: &Rule) {
        for planting in &self.verdicts.borrow().plantings {
            if planting.by == by {
                self.planted(planting, rule);
            }
        }
    }

    fn planted(&self, planting: &Planting, rule: &Rule) {
        let canary = planting.canary;
        self.note(|note| {
            let origin = CanaryOrigin {
                exchange: note.id,
                rule: rule.id.clone(),
                payload: planting.payload,
            };
            if self.chaos.planted().plant(canary, origin.clone()) {
                self.worker.engine.metrics.dropped(Sink::Canaries, 1);
            }
            if note.canaries.len() < CANARIES {
                note.canaries.push(CanaryNote {
                    canary,
                    origin,
                    left: None,
                });
            }
        });
    }
}
