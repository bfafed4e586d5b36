//! The scopes that a caller may see. The scopes of workspace `w` are `w` and `w.NAME`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// The existing workspaces, without the default one.
#[derive(Debug, Default)]
pub struct Workspaces(ArcSwap<BTreeSet<String>>);

impl Workspaces {
    /// Replaces them.
    pub fn set(&self, names: Arc<BTreeSet<String>>) {
        self.0.store(names);
    }

    /// Their names.
    pub fn names(&self) -> Arc<BTreeSet<String>> {
        self.0.load_full()
    }

    /// Whether a scope belongs to one of them.
    pub fn hold(&self, scope: &str) -> bool {
        self.0.load().contains(workspace_of(scope))
    }
}

impl PartialEq for Workspaces {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Workspaces {}

/// The scopes that a caller may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scopes {
    /// All.
    #[default]
    All,
    /// Those of this workspace.
    Of(String),
    /// Those outside of all workspaces, also of workspaces added later.
    OfNone(Arc<Workspaces>),
}

impl Scopes {
    /// Whether it contains this scope.
    pub fn hold(&self, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(workspace) => workspace_of(scope) == workspace,
            Self::OfNone(workspaces) => !workspaces.hold(scope),
        }
    }
}

/// The part of the name before the first dot: the scope's workspace, if that exists.
pub fn workspace_of(scope: &str) -> &str {
    scope
        .split_once('.')
        .map_or(scope, |(workspace, _)| workspace)
}

/// Whether a scope is a run's: without the workspace, its name begins with `run-` and the run's id.
pub fn is_of_run(scope: &str) -> bool {
    let name = scope.split_once('.').map_or(scope, |(_, name)| name);
    let id = name.strip_prefix("run-").and_then(|rest| rest.get(..24));
    id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scopes_of_a_run_are_known_by_its_id() {
        for (scope, is_runs) in [
            ("run-0193a1b2c3d4000000010042", true),
            ("run-0193a1b2c3d4000000010042-7", true),
            ("run-0193a1b2c3d4000000010042-slot-1", true),
            ("w.run-0193a1b2c3d4000000010042-7", true),
            ("run-1", false),
            ("run-nightly-0193a1b2c3d4000000010042", false),
            ("0193a1b2c3d4000000010042", false),
            ("default", false),
        ] {
            assert_eq!(is_of_run(scope), is_runs, "{scope}");
        }
    }

    #[test]
    fn a_workspace_has_the_scope_of_its_name_and_those_below() {
        let one = Scopes::Of("w".to_owned());
        let workspaces = Arc::new(Workspaces::default());
        let rest = Scopes::OfNone(Arc::clone(&workspaces));
        assert!(rest.hold("w.job"));
        workspaces.set(Arc::new(BTreeSet::from(["w".to_owned()])));
        for (scope, is_of) in [
            ("w", true),
            ("w.job", true),
            ("w.job.7", true),
            ("w.", true),
            ("default", false),
            ("w2", false),
            ("w2.job", false),
            ("w-job", false),
            ("job.w", false),
            (".w", false),
        ] {
            assert_eq!(one.hold(scope), is_of, "{scope}");
            assert_eq!(rest.hold(scope), !is_of, "{scope}");
            assert!(Scopes::All.hold(scope));
        }
    }
}
