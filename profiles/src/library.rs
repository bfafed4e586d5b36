//! All profiles that can be named: built in, from files, from the API.

use std::sync::Arc;

use crate::error::ProfileError;
use crate::profile::Profile;
use crate::ruleset::RuleSet;
use crate::tools::ToolNames;

/// Profiles by name: API over file over built-in. Changing it gives a new library; clones share
/// their profiles.
#[derive(Debug, Clone, Default)]
pub struct Library {}

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Part of Squall.
    Builtin,
    /// A file of the `profiles:` directory.
    File,
    /// Put by the API.
    Api,
}

impl Source {
    /// `builtin`, `file` or `api`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::File => "file",
            Self::Api => "api",
        }
    }
}

/// One line of the list of profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name.
    pub name: String,
    /// Which of the profiles of that name holds.
    pub source: Source,
    /// Its description, empty when it has none.
    pub description: String,
    /// How many rules it has, those it extends not counted.
    pub rules: usize,
}

/// Why a profile cannot be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    Unknown(String),
    /// It is not one of the API's.
    #[error("profile `{name}` comes from {}; only profiles put by the API can be deleted",
        match origin { Source::Builtin => "Squall itself", _ => "a file" })]
    NotFromApi {
        /// Its name.
        name: String,
        /// Where it comes from.
        origin: Source,
    },
}

impl Library {
    /// The profiles that are part of Squall.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// This library with a profile file added, in place of an earlier one of that name. The name is
    /// the one in the file, else the file's own without extension.
    pub fn with_file(&self, file: &str, text: &str) -> Result<Self, Vec<ProfileError>> {
        let _ = (file, text);
        Ok(self.clone())
    }

    /// This library with a profile put by the API under `name`.
    pub fn with_api(&self, name: &str, profile: Profile) -> Result<Self, ProfileError> {
        let _ = (name, profile);
        Ok(self.clone())
    }

    /// This library without the profile that the API put under `name`.
    pub fn without_api(&self, name: &str) -> Result<Self, RemoveError> {
        Err(RemoveError::Unknown(name.to_owned()))
    }

    /// This library without the profiles from files (to read the directory anew).
    #[must_use]
    pub fn without_files(&self) -> Self {
        self.clone()
    }

    /// The profile that holds under a name, and where it comes from.
    pub fn get(&self, name: &str) -> Option<(Source, &Arc<Profile>)> {
        let _ = name;
        None
    }

    /// Every name with the profile that holds under it, by name.
    pub fn list(&self) -> Vec<Listed> {
        Vec::new()
    }

    /// The rules of a profile and of all it extends, compiled. `none` is the empty set.
    pub fn rule_set(&self, name: &str, tools: &ToolNames) -> Result<Arc<RuleSet>, ProfileError> {
        let _ = (name, tools);
        Ok(Arc::default())
    }

    /// The same for a profile that is in no library: inline chaos ([`crate::profile::parse_chaos`])
    /// or a draft under validation.
    pub fn rule_set_of(
        &self,
        profile: &Profile,
        tools: &ToolNames,
    ) -> Result<Arc<RuleSet>, ProfileError> {
        let _ = (profile, tools);
        Ok(Arc::default())
    }
}
