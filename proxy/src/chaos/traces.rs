//! Traces that stand for scopes: a run gives each asking of an agent a trace of its own, and calls that carry
//! it are the asking's, whatever else the agent passes on.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::HeaderName;
use squall_journal::trace_id::TraceId;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The traces that stand for scopes; at most one for each scope.
#[derive(Debug, Default)]
pub struct Traces(ArcSwap<HashMap<TraceId, Arc<str>>>);

impl Traces {
    /// A trace stands for a scope from now on, in place of the one that did.
    pub fn register(&self, trace: TraceId, scope: &str) {
        let scope: Arc<str> = scope.into();
        self.0.rcu(|scopes| {
            let mut scopes = without(scopes, &scope);
            scopes.insert(trace, Arc::clone(&scope));
            scopes
        });
    }

    /// No trace stands for a scope any more.
    pub fn forget(&self, scope: &str) {
        self.0.rcu(|scopes| without(scopes, scope));
    }

    /// The scope of a request by its trace.
    pub(crate) fn scope_of(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        let scopes = self.0.load();
        if scopes.is_empty() {
            return None;
        }
        let trace = headers.get(TRACEPARENT)?.to_str().ok()?;
        let trace = TraceId::of_traceparent(trace)?;
        scopes.get(&trace).cloned()
    }
}

fn without(scopes: &HashMap<TraceId, Arc<str>>, scope: &str) -> HashMap<TraceId, Arc<str>> {
    let others = scopes.iter().filter(|(_, of)| ***of != *scope);
    others
        .map(|(trace, scope)| (*trace, Arc::clone(scope)))
        .collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_trace_stands_for_its_scope_until_another_one_does() {
        let traces = Traces::default();
        let trace = |bits| TraceId::new(bits).expect("not zero");
        let scope = |bits| {
            let value = format!("00-{}-00f067aa0ba902b7-01", trace(bits));
            let value = HeaderValue::from_str(&value).expect("a header");
            traces.scope_of(&HeaderMap::from_iter([(TRACEPARENT, value)]))
        };
        assert_eq!(scope(1), None);
        traces.register(trace(1), "a");
        traces.register(trace(2), "b");
        assert_eq!(
            (scope(1).as_deref(), scope(2).as_deref()),
            (Some("a"), Some("b"))
        );
        traces.register(trace(3), "a");
        assert_eq!((scope(1), scope(3).as_deref()), (None, Some("a")));
        traces.forget("b");
        assert_eq!(scope(2), None);
        assert_eq!(traces.scope_of(&HeaderMap::new()), None);
    }
}
