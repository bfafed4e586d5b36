//! Spans of traces that arrive in several requests of OTLP.

use std::collections::VecDeque;
use std::sync::Mutex;

use squall_harness::import::otlp::{self, Span};

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

#[derive(Debug)]
struct CollectedTrace {
    workspace: String,
    id: String,
    spans: Vec<Span>,
}

impl CollectedTrace {
    fn weight(&self) -> usize {
        self.spans.iter().map(Span::weight).sum()
    }
}

impl CollectedTraces {
    /// Adds spans. Returns all spans of each trace that changed, and the number of those that did not fit.
    pub(crate) fn add(&self, workspace: &str, spans: Vec<Span>) -> (Vec<Vec<Span>>, usize) {
        let mut traces = lock(&self.0);
        let (mut changed, mut rejected) = (Vec::new(), 0);
        for span in spans {
            let mut of = traces.iter_mut();
            let found = of.position(|it| it.workspace == workspace && it.id == span.trace);
            let mut trace =
                found
                    .and_then(|at| traces.remove(at))
                    .unwrap_or_else(|| CollectedTrace {
                        workspace: workspace.to_owned(),
                        id: span.trace.clone(),
                        spans: Vec::new(),
                    });
            if trace.weight() + span.weight() > TRACE_BYTES {
                rejected += 1;
            } else {
                changed.retain(|id| *id != trace.id);
                changed.push(trace.id.clone());
                otlp::merge(&mut trace.spans, span);
            }
            traces.push_back(trace);
        }
        let is_changed =
            |it: &&CollectedTrace| it.workspace == workspace && changed.contains(&it.id);
        let whole = traces
            .iter()
            .filter(is_changed)
            .map(|it| it.spans.clone())
            .collect();
        while traces.len() > TRACES
            || traces.iter().map(CollectedTrace::weight).sum::<usize>() > BYTES
        {
            traces.pop_front();
        }
        (whole, rejected)
    }
}
