//! Spans of traces that arrive in several requests of OTLP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use squall_harness::import::otlp::Span;

use crate::lock;

/// Most traces that are kept; a new one replaces the oldest.
const TRACES: usize = 64;

/// Most bytes of one trace.
const TRACE_BYTES: usize = 8 << 20;

/// Most bytes of all traces.
const BYTES: usize = 64 << 20;

/// The newest traces of all workspaces.
#[derive(Debug, Default)]
pub struct CollectedTraces(Mutex<VecDeque<CollectedTrace>>);

#[derive(Debug, Default)]
struct CollectedTrace {
    workspace: String,
    id: String,
    /// By id: a span that is sent again replaces the earlier one.
    spans: BTreeMap<String, Span>,
    /// Bytes of its spans.
    weight: usize,
}

impl CollectedTrace {
    /// Adds a span; `false`: it does not fit.
    fn add(&mut self, span: Span) -> bool {
        let replaced = self.spans.get(&span.id).map_or(0, Span::weight);
        let weight = self.weight - replaced + span.weight();
        if weight > TRACE_BYTES {
            return false;
        }
        self.weight = weight;
        self.spans.insert(span.id.clone(), span);
        true
    }
}

impl CollectedTraces {
    /// Adds spans. Returns all spans of each trace that changed, and the number of those that did not fit.
    pub(crate) fn add(&self, workspace: &str, spans: Vec<Span>) -> (Vec<Vec<Span>>, usize) {
        let mut traces = lock(&self.0);
        let (mut changed, mut rejected) = (BTreeSet::new(), 0);
        let mut of_traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
        for span in spans {
            of_traces.entry(span.trace.clone()).or_default().push(span);
        }
        for (id, spans) in of_traces {
            let mut of = traces.iter();
            let found = of.position(|it| it.workspace == workspace && it.id == id);
            let mut trace = found.and_then(|at| traces.remove(at)).unwrap_or_else(|| {
                let workspace = workspace.to_owned();
                CollectedTrace {
                    workspace,
                    id: id.clone(),
                    ..CollectedTrace::default()
                }
            });
            for span in spans {
                if trace.add(span) {
                    changed.insert(id.clone());
                } else {
                    rejected += 1;
                }
            }
            traces.push_back(trace);
        }
        let is_changed =
            |it: &&CollectedTrace| it.workspace == workspace && changed.contains(&it.id);
        let whole = traces
            .iter()
            .filter(is_changed)
            .map(|it| it.spans.values().cloned().collect())
            .collect();
        while traces.len() > TRACES || traces.iter().map(|it| it.weight).sum::<usize>() > BYTES {
            traces.pop_front();
        }
        (whole, rejected)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_harness::import::otlp::OtlpFormat;

    use super::*;

    fn spans(spans: &[(u8, u8, usize)]) -> Vec<Span> {
        let spans = spans.iter().map(|(trace, id, length)| {
            json!({ "traceId": format!("{trace:032x}"), "spanId": format!("{id:016x}"), "name": "x".repeat(*length) })
        });
        let spans: Vec<_> = spans.collect();
        let request = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
        let read = OtlpFormat::Json.spans(request.to_string().as_bytes(), false);
        read.expect("spans").0
    }

    #[test]
    fn spans_of_several_requests_are_one_trace_and_are_bounded() {
        let collected = CollectedTraces::default();
        let long = TRACE_BYTES / 2 - 1000;
        for (sent, whole, rejected) in [
            (vec![(1, 1, 1), (2, 1, 1)], vec![1, 1], 0),
            (vec![(1, 2, long)], vec![2], 0),
            // A span that is sent again takes the place of the earlier one.
            (vec![(1, 2, long)], vec![2], 0),
            (vec![(1, 3, long), (1, 4, 1)], vec![4], 0),
            (vec![(1, 5, long)], vec![], 1),
        ] {
            let (traces, left_out) = collected.add("w", spans(&sent));
            let lengths: Vec<_> = traces.iter().map(Vec::len).collect();
            assert_eq!((lengths, left_out), (whole, rejected), "{}", sent.len());
        }
        let (others, _) = collected.add("other", spans(&[(1, 9, 1)]));
        assert_eq!(others[0].len(), 1);
        for trace in 10..=u8::try_from(TRACES + 10).expect("a byte") {
            collected.add("w", spans(&[(trace, 1, 1)]));
        }
        assert_eq!(collected.add("w", spans(&[(1, 6, 1)])).0[0].len(), 1);
    }
}
