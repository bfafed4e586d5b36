//! What crossed the edges of a crew, from the exchanges of a run.

use std::collections::BTreeMap;

use squall_journal::record::Kind;

use crate::run::CrewEdge;
use crate::trace::{Attempt, Trace};

/// Most edges of a run; later ones are left out.
const EDGES: usize = 200;

/// The edges that these invocations used, by name.
pub(crate) fn edges<'t>(traces: impl Iterator<Item = &'t Trace>) -> Vec<CrewEdge> {
    let mut edges: BTreeMap<(Option<&str>, &str), CrewEdge> = BTreeMap::new();
    for trace in traces {
        for call in trace.attempts().iter().filter(|call| is_of_crew(call)) {
            let (from, to) = (call.from.as_deref(), called(call));
            if edges.len() == EDGES && !edges.contains_key(&(from, to)) {
                continue;
            }
            let edge = edges.entry((from, to)).or_insert_with(|| CrewEdge {
                from: from.map(str::to_owned),
                to: to.to_owned(),
                ..CrewEdge::default()
            });
            edge.calls += 1;
            edge.failed += u64::from(call.failure.is_some());
            edge.faults += trace.exchange(call).record.applied().count() as u64;
        }
    }
    edges.into_values().collect()
}

fn is_of_crew(call: &Attempt) -> bool {
    match call.kind {
        Kind::Agent => call.sends_message,
        Kind::Llm | Kind::Tool | Kind::Mcp | Kind::Other => call.from.is_some(),
    }
}

fn called(call: &Attempt) -> &str {
    let name = call.tools.first().or(call.model.as_ref());
    name.unwrap_or(&call.host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn an_edge_has_the_calls_failures_and_faults_of_all_invocations() {
        let failed =
            r#"{"jsonrpc":"2.0","id":"1","result":{"kind":"task","status":{"state":"failed"}}}"#;
        let message = || Sent::agent("worker", Some("planner"));
        let mut by_planner = Sent::model("[]");
        by_planner.record.agent = message().record.agent;
        let mut poll = message();
        poll.record.agent.get_or_insert_default().method = Some("tasks/get".into());
        let first = [
            message()
                .answer_body(failed)
                .injected("error", serde_json::json!({})),
            Sent::model("[]"),
            by_planner,
        ];
        let second = [
            message(),
            message().status(503),
            poll,
            Sent::agent("worker", None),
        ];
        let traces = [trace(&first), trace(&second)];
        let edge = |from: Option<&str>, to: &str, [calls, failed, faults]: [u64; 3]| CrewEdge {
            from: from.map(str::to_owned),
            to: to.to_owned(),
            calls,
            failed,
            faults,
        };
        let expected = [
            edge(None, "worker", [1, 0, 0]),
            edge(Some("planner"), "gpt-4o", [1, 0, 0]),
            edge(Some("planner"), "worker", [3, 2, 1]),
        ];
        assert_eq!(edges(traces.iter()), expected);
    }
}
