//! Aliases of scopes. A run gives each invocation its own scope and trace. Calls with the trace
//! belong to the invocation; so do calls that only name the invocation's slot.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::HeaderName;
use squall_journal::trace_id::TraceId;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Aliases of scopes; at most one trace for each.
#[derive(Debug, Default)]
pub struct Aliases {
    traces: Names<TraceId>,
    slots: Names<Arc<str>>,
}

impl Aliases {
    /// Maps a trace to a scope, in place of its previous scope.
    pub fn trace(&self, trace: TraceId, scope: &str) {
        self.traces.put(&trace, scope, |of| of != scope);
    }

    /// Maps a slot to a scope, in place of its previous scope.
    pub fn slot(&self, slot: &str, scope: &str) {
        self.slots.put(&slot.into(), scope, |_| true);
    }

    /// Removes all aliases of a scope.
    pub fn forget(&self, scope: &str) {
        self.traces.retain(|of| of != scope);
        self.slots.retain(|of| of != scope);
    }

    /// The scope of a request, by its trace.
    pub(crate) fn of_trace(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        if self.traces.0.load().is_empty() {
            return None;
        }
        let trace = headers.get(TRACEPARENT)?.to_str().ok()?;
        self.traces.find(&TraceId::of_traceparent(trace)?)
    }

    /// The scope of a slot; `None` if the name is not a slot's.
    pub(crate) fn of_slot(&self, name: &str) -> Option<Arc<str>> {
        self.slots.0.load().get(name).cloned()
    }
}

/// Scopes by alias.
#[derive(Debug)]
struct Names<K>(ArcSwap<HashMap<K, Arc<str>>>);

impl<K> Default for Names<K> {
    fn default() -> Self {
        Self(ArcSwap::default())
    }
}

impl<K: Clone + Eq + Hash> Names<K> {
    fn find(&self, name: &K) -> Option<Arc<str>> {
        self.0.load().get(name).cloned()
    }

    /// Maps `name` to `scope`. Keeps other aliases only if `stays` accepts their scope.
    fn put(&self, name: &K, scope: &str, stays: impl Fn(&str) -> bool) {
        let scope: Arc<str> = scope.into();
        self.0.rcu(|known| {
            let mut names = picked(known, &stays);
            names.insert(name.clone(), Arc::clone(&scope));
            names
        });
    }

    fn retain(&self, stays: impl Fn(&str) -> bool) {
        self.0.rcu(|known| picked(known, &stays));
    }
}

fn picked<K: Clone + Eq + Hash>(
    known: &HashMap<K, Arc<str>>,
    stays: impl Fn(&str) -> bool,
) -> HashMap<K, Arc<str>> {
    let those = known.iter().filter(|(_, scope)| stays(scope));
    those
        .map(|(name, scope)| (name.clone(), Arc::clone(scope)))
        .collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_trace_stands_for_its_scope_until_another_one_does() {
        let aliases = Aliases::default();
        let trace = |bits| TraceId::new(bits).expect("not zero");
        let scope = |bits| {
            let value = format!("00-{}-00f067aa0ba902b7-01", trace(bits));
            let value = HeaderValue::from_str(&value).expect("a header");
            aliases.of_trace(&HeaderMap::from_iter([(TRACEPARENT, value)]))
        };
        assert_eq!(scope(1), None);
        aliases.trace(trace(1), "a");
        aliases.trace(trace(2), "b");
        assert_eq!(
            (scope(1).as_deref(), scope(2).as_deref()),
            (Some("a"), Some("b"))
        );
        aliases.trace(trace(3), "a");
        assert_eq!((scope(1), scope(3).as_deref()), (None, Some("a")));
        aliases.forget("b");
        assert_eq!(scope(2), None);
        assert_eq!(aliases.of_trace(&HeaderMap::new()), None);
    }

    #[test]
    fn a_slot_stands_for_one_scope_after_the_other() {
        let aliases = Aliases::default();
        aliases.slot("s", "a");
        aliases.slot("t", "b");
        assert_eq!(aliases.of_slot("s").as_deref(), Some("a"));
        aliases.slot("s", "c");
        aliases.forget("a");
        let of = |slot: &str| aliases.of_slot(slot);
        assert_eq!(
            (of("s").as_deref(), of("t").as_deref(), of("a")),
            (Some("c"), Some("b"), None)
        );
        aliases.forget("c");
        assert_eq!(of("s"), None);
    }
}
