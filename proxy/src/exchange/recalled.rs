//! Responses for `stale` and `swapped`: stores each response and replays an earlier one.

use http::Response;
use squall_profiles::decide::Decision;
use squall_profiles::faults::rpc_answer::RpcChange;
use squall_profiles::plan::{Substitute, VerdictIndex};
use squall_profiles::rule::Rule;

use super::{Exchange, rule};
use crate::body::AgentBody;
use crate::faults::Ledger as _;
use crate::faults::recall::{Owner, StoredAnswer};

impl Exchange {
    /// Stores this response for rules that replay responses.
    pub(super) fn remember(
        &self,
        mut answer: Response<AgentBody>,
        decision: &Decision,
    ) -> Response<AgentBody> {
        let answers_one_call = !self.classified.is_rpc() || self.classified.only_call().is_some();
        for verdict in &decision.verdicts {
            if remembers(&verdict.rule) && answers_one_call {
                let owner = self.owner(&verdict.rule);
                let recall = &self.connection.worker.engine.recall;
                answer = recall.note(owner, self.call(decision), answer);
            }
        }
        answer
    }

    /// An earlier response in place of this one.
    pub(super) async fn recall(
        &self,
        verdict: VerdictIndex,
        which: &Substitute,
        answer: Response<AgentBody>,
        decision: &Decision,
    ) -> Response<AgentBody> {
        if self.classified.is_rpc() && self.classified.only_call().is_none() {
            let why = "old answers are kept of single MCP calls, and this is none";
            self.log.bypassed(verdict, why.to_owned());
            return answer;
        }
        let recall = &self.connection.worker.engine.recall;
        let Some((owner, kept)) = self.earlier(verdict, which, decision) else {
            self.log
                .bypassed(verdict, "there is no earlier answer to give again".into());
            return self.remember(answer, decision);
        };
        let again = kept.into_response(&self.method);
        let again = match self.classified.only_call() {
            None => again,
            // It answered another call, so it gets this call's id.
            Some(id) => {
                let change = RpcChange::AnswerTo(id.clone());
                self.change(change, Vec::new(), again, verdict).await
            }
        };
        self.log.applied(verdict);
        let inspect = &self.connection.worker.engine.inspect;
        // Read in full, as the earlier response of the next exchange.
        recall
            .note_unseen(owner, self.call(decision), answer, inspect)
            .await;
        again
    }

    /// The earlier response that a rule replays, if any.
    pub(super) fn earlier(
        &self,
        verdict: VerdictIndex,
        which: &Substitute,
        decision: &Decision,
    ) -> Option<(Owner, StoredAnswer)> {
        let recall = &self.connection.worker.engine.recall;
        let owner = self.owner(rule(decision, verdict)?);
        let kept = match which {
            Substitute::Swapped => recall.swapped(&owner, self.call(decision)),
            _ => recall.stale(&owner),
        };
        let kept = kept.filter(|kept| !self.classified.is_rpc() || kept.holds_reply());
        kept.map(|kept| (owner, kept))
    }

    pub(super) fn owner(&self, rule: &Rule) -> Owner {
        Owner {
            activation: self.log.chaos().activation().id.clone(),
            key: self.log.chaos().activation().key.clone(),
            rule: rule.id.clone(),
        }
    }

    /// Identifies the call: its fingerprint, or method and URL without one.
    pub(super) fn call(&self, decision: &Decision) -> u64 {
        decision.fingerprint.map_or_else(
            || {
                let call = format!("{} {}", self.method, self.target.url.as_str());
                xxhash_rust::xxh3::xxh3_64(call.as_bytes())
            },
            |fingerprint| fingerprint.0,
        )
    }
}

/// Whether a rule may replay an earlier response.
pub(super) fn remembers(rule: &Rule) -> bool {
    matches!(rule.mode(), "stale" | "swapped")
}
