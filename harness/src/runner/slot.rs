//! Where invocations follow one another: as many go on at once as there are slots.

use crate::agents::Place;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    /// Each invocation has a scope of its own.
    Own {
        /// What a process is called by that stays for all of them.
        name: String,
        /// Scopes are called so, with `-1`, `-2` and so on.
        scopes: String,
    },
    /// The scope of what names none: all are asked there.
    Shared(String),
    /// Each invocation has a scope of its own, and the scope of what names none beside it.
    Both {
        /// As of [`Self::Own`].
        name: String,
        /// As of [`Self::Own`].
        scopes: String,
        /// The scope of what names none.
        shared: String,
    },
}

impl Slot {
    /// Where the next invocation is; `number` tells its scope from all others of the run.
    pub(super) fn place(&self, number: impl FnOnce() -> u64) -> Place {
        match self {
            Self::Own { name, scopes } | Self::Both { name, scopes, .. } => Place {
                slot: name.clone(),
                scope: format!("{scopes}-{}", number()),
            },
            Self::Shared(scope) => Place::shared(scope),
        }
    }

    /// A scope that is the invocation's too.
    pub(super) fn beside(&self) -> Option<&str> {
        match self {
            Self::Both { shared, .. } => Some(shared),
            Self::Own { .. } | Self::Shared(_) => None,
        }
    }
}
