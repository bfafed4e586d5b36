//! Changes to the profile library, applied immediately to the activations in force.

use std::convert::Infallible;
use std::sync::Arc;

use squall_documents::DocumentError;
use squall_documents::variables::Expanded;
use squall_journal::activation::Change;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::tools::ToolNames;

use super::{Chaos, Defaults, NO_CHAOS, Profiles, PutError, RuleSource, ScopeChaos};
use crate::lock::lock;

/// Why profiles could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError<E> {
    /// The change itself failed.
    #[error(transparent)]
    Change(E),
    /// A profile in force could no longer be compiled; nothing was changed.
    #[error("profile `{profile}` is in force and would no longer be valid: {source}")]
    InForce {
        /// The profile.
        profile: String,
        /// What would be wrong with it.
        source: DocumentError,
    },
}

/// An activation and its new rules.
type Replacement = (Arc<ScopeChaos>, Arc<RuleSet>);

impl Chaos {
    /// The current profiles.
    pub fn library(&self) -> Library {
        lock(&self.profiles).library.clone()
    }

    /// The rules of a profile that is not stored, which may extend those in `library`.
    pub fn rules_of(&self, library: &Library, profile: &Profile) -> Result<RuleSet, DocumentError> {
        let tools = lock(&self.profiles).tools.clone();
        library.rule_set_of(profile, &tools)
    }

    /// Changes the profiles. Activations get the new rules immediately and keep their counters. A
    /// deleted profile stays in force unchanged. On an error nothing changes.
    pub fn edit<E>(
        &self,
        change: impl FnOnce(&Library) -> Result<Library, E>,
    ) -> Result<(), EditError<E>> {
        let mut profiles = lock(&self.profiles);
        let (edited, replacements) = self.prepare(&profiles, change)?;
        *profiles = edited;
        self.replace(replacements);
        Ok(())
    }

    /// The result of [`Self::edit`], without any change.
    pub fn would_edit<E>(
        &self,
        change: impl FnOnce(&Library) -> Result<Library, E>,
    ) -> Result<(), EditError<E>> {
        let profiles = lock(&self.profiles);
        self.prepare(&profiles, change).map(drop)
    }

    fn prepare<E>(
        &self,
        profiles: &Profiles,
        change: impl FnOnce(&Library) -> Result<Library, E>,
    ) -> Result<(Profiles, Vec<Replacement>), EditError<E>> {
        let library = change(&profiles.library).map_err(EditError::Change)?;
        let edited = Profiles {
            library,
            tools: profiles.tools.clone(),
        };
        let touched = |source: &RuleSource| {
            versions(&profiles.library, source) != versions(&edited.library, source)
        };
        let replacements = self.compile_again(&edited, touched)?;
        Ok((edited, replacements))
    }

    /// Applies a reloaded config: tool names, defaults and safety limits. Activations in force keep
    /// their seed and time to live.
    pub fn reconfigure(
        &self,
        tools: ToolNames,
        defaults: Defaults,
    ) -> Result<(), EditError<Infallible>> {
        let mut profiles = lock(&self.profiles);
        let library = profiles.library.clone();
        let changed = Profiles { library, tools };
        let replacements = self.compile_again(&changed, |_| true)?;
        *profiles = changed;
        lock(&self.keeping).defaults = defaults;
        self.replace(replacements);
        Ok(())
    }

    /// Compiles new rules for the activations that `touched` selects.
    fn compile_again<E>(
        &self,
        profiles: &Profiles,
        touched: impl Fn(&RuleSource) -> bool,
    ) -> Result<Vec<Replacement>, EditError<E>> {
        let table = self.table.load();
        let mut replacements = Vec::new();
        let suspended = table.all().filter_map(|own| own.suspended());
        for own in table.own().chain(suspended) {
            let Some(source) = own.source().filter(|source| touched(source)) else {
                continue;
            };
            let rules = own.activation().rules();
            match profiles.compile(source, rules.own_tools()) {
                Ok(rules) => replacements.push((own.clone(), rules)),
                Err(PutError::UnknownProfile(_) | PutError::Quota(_)) => {}
                Err(PutError::Profile(source)) => {
                    let profile = own.activation().profile.clone();
                    return Err(EditError::InForce { profile, source });
                }
            }
        }
        Ok(replacements)
    }

    fn replace(&self, replacements: Vec<Replacement>) {
        for (own, rules) in replacements {
            own.activation().replace_rules(rules.clone());
            // A concurrent fork of the previous rules is in the table once this lock is free.
            drop(lock(&self.keeping));
            let table = self.table.load();
            let forks = table.all().filter(|scope| !scope.is_own());
            for fork in forks.filter(|fork| Arc::ptr_eq(&own, table.above(fork.scope()))) {
                fork.activation().replace_rules(rules.clone());
            }
            self.publish(Change::Edited, None, None, self.record(&own));
        }
    }
}

/// The names of the profiles that one extends.
fn names(profile: &Profile) -> impl DoubleEndedIterator<Item = String> {
    profile.extends.iter().map(|extends| extends.name.clone())
}

/// Versions of the profile and of all profiles it extends, in order.
fn versions(library: &Library, source: &RuleSource) -> Vec<(Arc<str>, Arc<Expanded>)> {
    let mut versions = Vec::new();
    let seen_by_workspace;
    let library = match source {
        RuleSource::OfWorkspace { workspace, .. } => {
            seen_by_workspace = library.of_workspace(workspace);
            &seen_by_workspace
        }
        RuleSource::Profile(_) | RuleSource::Inline(_) => library,
        RuleSource::Limited { rules, .. } => return self::versions(library, rules),
    };
    let mut open: Vec<String> = match source {
        RuleSource::Profile(name) | RuleSource::OfWorkspace { profile: name, .. } => {
            vec![name.clone()]
        }
        RuleSource::Inline(profile) => names(profile).collect(),
        RuleSource::Limited { .. } => Vec::new(),
    };
    let mut seen = std::collections::HashSet::new();
    while let Some(name) = open.pop() {
        if name == NO_CHAOS || !seen.insert(name.clone()) {
            continue;
        }
        if let Some((_, profile)) = library.get(&name) {
            let (text, expanded) = profile.version();
            versions.push((text.clone(), expanded.clone()));
            open.extend(names(profile).rev());
        }
    }
    versions
}
