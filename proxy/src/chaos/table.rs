//! The table of activations; every change creates a new one.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use squall_journal::quota::{OverQuota, Quota};
use squall_journal::scopes::workspace_of;
use tokio_util::sync::CancellationToken;

use super::{DEFAULT_SCOPE, ScopeChaos};

/// Most forks. Beyond it the oldest unused fork is evicted; its scope restarts when it is used
/// again.
pub(super) const FORKS: usize = 1024;

/// Scopes with their own activation, except runs' activations. Each holds its compiled rules.
const OWN: Quota = Quota {
    what: "scopes with chaos of their own",
    each: 256,
    all: 1024,
    remedy: "end the chaos of one of them first",
};

/// The activations for every known scope.
#[derive(Debug, Clone)]
pub(super) struct ScopeTable {
    /// For traffic outside of named scopes.
    pub(super) default: Arc<ScopeChaos>,
    /// Own activations, and forks.
    pub(super) named: HashMap<Arc<str>, Arc<ScopeChaos>>,
    /// Existing workspaces: in workspace `w`, a scope `w.NAME` follows the activation of `w` before
    /// the default one.
    workspaces: Arc<BTreeSet<String>>,
}

impl ScopeTable {
    pub(super) fn new(default: Arc<ScopeChaos>) -> Self {
        Self {
            default,
            named: HashMap::new(),
            workspaces: Arc::default(),
        }
    }

    /// The activation that a scope follows without its own one.
    pub(super) fn above(&self, scope: &str) -> &Arc<ScopeChaos> {
        let workspace = workspace_of(scope);
        if workspace.len() < scope.len() && self.workspaces.contains(workspace) {
            let own = self.named.get(workspace).filter(|found| found.is_own());
            return own.unwrap_or(&self.default);
        }
        &self.default
    }

    /// The workspace of a scope.
    pub(super) fn owner<'s>(&self, scope: &'s str) -> &'s str {
        let workspace = workspace_of(scope);
        if self.workspaces.contains(workspace) {
            workspace
        } else {
            DEFAULT_SCOPE
        }
    }

    /// Checks whether the workspace's quota permits another activation.
    pub(super) fn check_room(&self, scope: &str) -> Result<(), OverQuota> {
        let held: Vec<_> = self.own().filter(|own| own.run().is_none()).collect();
        if held.iter().any(|own| **own.scope() == *scope) {
            return Ok(());
        }
        OWN.check(
            self.owner(scope),
            held.iter().map(|own| self.owner(own.scope())),
        )
    }

    /// The activation for a scope, if the scope is known.
    pub(super) fn find(&self, scope: &str) -> Option<&Arc<ScopeChaos>> {
        if scope == DEFAULT_SCOPE {
            Some(&self.default)
        } else {
            self.named.get(scope)
        }
    }

    /// All own activations, including the default one.
    pub(super) fn own(&self) -> impl Iterator<Item = &Arc<ScopeChaos>> {
        std::iter::once(&self.default)
            .chain(self.named.values())
            .filter(|scope| scope.is_own())
    }

    /// All entries: the default one, own ones and forks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ScopeChaos>> {
        std::iter::once(&self.default).chain(self.named.values())
    }

    /// This table with `scope` in place of the entry with its name, which may be the default one.
    /// Forks whose parent changes restart.
    pub(super) fn with(&self, scope: Arc<ScopeChaos>) -> Self {
        let mut after = self.clone();
        if scope.is_named() {
            after.named.insert(scope.scope().clone(), scope);
        } else {
            after.default = scope;
        }
        after.fork_again(self);
        after
    }

    /// This table with other workspaces.
    pub(super) fn with_workspaces(&self, workspaces: Arc<BTreeSet<String>>) -> Self {
        let mut after = Self {
            workspaces,
            ..self.clone()
        };
        after.fork_again(self);
        after
    }

    /// Renews forks whose parent differs from that in `former`.
    fn fork_again(&mut self, former: &Self) {
        let forks = self.named.iter().filter(|(_, scope)| scope.is_fork());
        let again: Vec<_> = forks
            .filter_map(|(name, scope)| {
                let above = self.above(name);
                if Arc::ptr_eq(above, former.above(name)) {
                    return None;
                }
                let fork = above.fork(name.clone(), scope.ended().clone());
                let fork = if above.is_own() {
                    fork
                } else {
                    fork.after(scope)
                };
                Some((name.clone(), Arc::new(fork)))
            })
            .collect();
        self.named.extend(again);
    }

    /// This table without the own activations of the named scopes that `ends` selects.
    pub(super) fn without_own(&self, ends: impl Fn(&str) -> bool) -> Self {
        let mut after = self.clone();
        let is_over = |scope: &ScopeChaos| scope.is_own() && ends(scope.scope());
        after.named.retain(|_, scope| !is_over(scope));
        let ended = self.named.values().filter(|scope| is_over(scope));
        let forks: Vec<_> = ended
            .map(|scope| {
                let above = after.above(scope.scope());
                let fork = above.fork(scope.scope().clone(), scope.ended().clone());
                (scope.scope().clone(), Arc::new(fork.after(scope)))
            })
            .collect();
        after.named.extend(forks);
        after.fork_again(self);
        after
    }

    /// This table without the named scopes for late exchanges that `ends` selects.
    pub(super) fn without_rests(&self, ends: impl Fn(&ScopeChaos) -> bool) -> Self {
        let mut after = self.clone();
        after
            .named
            .retain(|_, scope| !(scope.is_named_rest() && ends(scope)));
        after
    }

    /// A fork of a named scope's parent, to add with [`Self::with`].
    pub(super) fn fork(&self, scope: &str) -> Arc<ScopeChaos> {
        let above = self.above(scope);
        Arc::new(match self.named.get(scope) {
            None => above.fork(scope.into(), CancellationToken::new()),
            Some(known) => {
                let fork = above.fork(scope.into(), known.ended().clone());
                fork.after(known)
            }
        })
    }

    /// Removes excess forks, the oldest first of those that were not used since the last call.
    /// `forks` holds all of them, oldest first.
    pub(super) fn make_room(&mut self, forks: &mut VecDeque<Arc<str>>) {
        // Each used fork moves to the back once; after a whole round the oldest is removed.
        let mut spared = 0;
        while forks.len() > FORKS {
            let Some(name) = forks.pop_front() else {
                return;
            };
            match self.named.get(&name) {
                // The scope has got its own activation.
                None => {}
                Some(scope) if scope.is_own() => {}
                Some(fork) if spared < FORKS && fork.take_used() => {
                    spared += 1;
                    forks.push_back(name);
                }
                Some(fork) => {
                    // Its connections refer to an entry outside the table, so later changes could
                    // not end them.
                    fork.ended().cancel();
                    self.named.remove(&name);
                }
            }
        }
    }
}
