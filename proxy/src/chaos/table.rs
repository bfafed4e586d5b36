//! The table that is swapped: every change makes a new one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{DEFAULT_SCOPE, ScopeChaos};

/// Most forks held; beyond it the oldest that is not in use makes room, and its scope begins again
/// when it comes back.
pub(super) const FORKS: usize = 1024;

/// What is in force for every scope that was named so far.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// For everything that is in no named scope.
    pub(super) default: Arc<ScopeChaos>,
    /// Activations of their own, and forks of the default one.
    pub(super) named: HashMap<Arc<str>, Arc<ScopeChaos>>,
}

impl Table {
    pub(super) fn new(default: Arc<ScopeChaos>) -> Self {
        Self {
            default,
            named: HashMap::new(),
        }
    }

    /// What is in force for a scope, if the scope is known.
    pub(super) fn find(&self, scope: &str) -> Option<&Arc<ScopeChaos>> {
        if scope == DEFAULT_SCOPE {
            Some(&self.default)
        } else {
            self.named.get(scope)
        }
    }

    /// Activations that scopes have for themselves, the default one among them.
    pub(super) fn own(&self) -> impl Iterator<Item = &Arc<ScopeChaos>> {
        std::iter::once(&self.default)
            .chain(self.named.values())
            .filter(|scope| scope.is_own())
    }

    /// Everything: the default one, own ones and forks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ScopeChaos>> {
        std::iter::once(&self.default).chain(self.named.values())
    }

    /// This table with `scope` in place of what was there under its name.
    pub(super) fn with(&self, scope: Arc<ScopeChaos>) -> Self {
        let mut after = self.clone();
        after.named.insert(scope.scope().clone(), scope);
        after
    }

    /// This table under another default activation: forks begin again as forks of that.
    pub(super) fn with_default(&self, default: Arc<ScopeChaos>) -> Self {
        let mut after = Self {
            default,
            named: self.named.clone(),
        };
        for scope in after.named.values_mut().filter(|scope| !scope.is_own()) {
            let ended = scope.ended().clone();
            let fork = after.default.fork(scope.scope().clone(), ended);
            *scope = Arc::new(if after.default.is_own() {
                fork
            } else {
                fork.after(scope)
            });
        }
        after
    }

    /// This table with every named scope under the default activation.
    pub(super) fn without_own(&self) -> Self {
        let mut after = self.clone();
        for scope in after.named.values_mut().filter(|scope| scope.is_own()) {
            let ended = scope.ended().clone();
            let fork = after.default.fork(scope.scope().clone(), ended);
            *scope = Arc::new(fork.after(scope));
        }
        after
    }

    /// The default activation for a named scope, to be put in with [`Self::with`].
    pub(super) fn fork(&self, scope: &str) -> Arc<ScopeChaos> {
        Arc::new(match self.named.get(scope) {
            None => self.default.fork(scope.into(), CancellationToken::new()),
            Some(known) => {
                let fork = self.default.fork(scope.into(), known.ended().clone());
                fork.after(known)
            }
        })
    }

    /// Takes out forks that are too many, the oldest first of those that nobody asked for since
    /// this last came by; `forks` are all of them, oldest first.
    pub(super) fn make_room(&mut self, forks: &mut VecDeque<Arc<str>>) {
        // Each fork that was in use goes to the back once; after a whole round the oldest goes.
        let mut spared = 0;
        while forks.len() > FORKS {
            let Some(name) = forks.pop_front() else {
                return;
            };
            match self.named.get(&name) {
                // The scope got an activation of its own meanwhile.
                None => {}
                Some(scope) if scope.is_own() => {}
                Some(fork) if spared < FORKS && fork.take_used() => {
                    spared += 1;
                    forks.push_back(name);
                }
                Some(fork) => {
                    // Its connections hold what is no longer in the table: nobody could end them.
                    fork.ended().cancel();
                    self.named.remove(&name);
                }
            }
        }
    }
}
