//! Keys of stored profiles, and their place in a library.

use std::fmt;

use squall_documents::DocumentError;
use squall_profiles::library::{Library, RemoveError};
use squall_profiles::profile::Profile;

use crate::store::{DEFAULT_WORKSPACE, DocumentKind, Key};

/// The key of a stored profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProfileKey {
    pub(super) workspace: String,
    pub(super) name: String,
}

impl ProfileKey {
    pub(crate) fn of(workspace: &str, name: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(super) fn in_store(&self) -> Key<'_> {
        Key {
            workspace: &self.workspace,
            kind: DocumentKind::Profile,
            name: &self.name,
        }
    }

    /// The part of a library that its workspace sees.
    pub(super) fn view(&self, library: &Library) -> Library {
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => library.clone(),
            workspace => library.of_workspace(workspace),
        }
    }

    /// A library with the profile put under this key.
    pub(super) fn put(
        &self,
        library: &Library,
        profile: Profile,
    ) -> Result<Library, DocumentError> {
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => library.with_api(&self.name, profile),
            workspace => library.with_api_of(workspace, &self.name, profile),
        }
    }

    /// A library without the profile under this key.
    pub(super) fn delete(&self, library: &Library) -> Result<Library, RemoveError> {
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => library.without_api(&self.name),
            workspace => library.without_api_of(workspace, &self.name),
        }
    }
}

impl fmt::Display for ProfileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => write!(f, "profile `{}`", self.name),
            workspace => write!(f, "profile `{}` of workspace `{workspace}`", self.name),
        }
    }
}
