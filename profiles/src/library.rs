//! All profiles: built in, from files, and from the API.

mod builtin;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use crate::profile::{self, Extends, NONE, Profile, is_profile_name, stem};
use crate::rule::Rule;
use crate::ruleset::RuleSet;
use crate::tools::ToolNames;
use squall_documents::Variables;
use squall_documents::{DocumentError, did_you_mean};

/// Profiles by name. The API takes precedence over files, and files over built-in profiles. A
/// change returns a new library; clones share their profiles.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// Profiles that are built in, from files and from the API.
    profiles: BTreeMap<String, BTreeMap<ProfileSource, Arc<Profile>>>,
    /// Profiles that the API added for a workspace, by workspace and name; other workspaces do not
    /// see them.
    workspaces: BTreeMap<String, BTreeMap<String, Arc<Profile>>>,
}

squall_documents::named! {
    /// The source of a profile; later variants take precedence over earlier ones.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ProfileSource {
        /// Part of Squall.
        Builtin = "builtin",
        /// A file of the `profiles:` directory.
        File = "file",
        /// Added by the API.
        Api = "api",
    }
}

/// An entry in the list of profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name.
    pub name: String,
    /// The source of the profile in effect under this name.
    pub source: ProfileSource,
    /// Its description, empty if it has none.
    pub description: String,
    /// Number of its rules, without those of profiles it extends.
    pub rules: usize,
}

/// Why a profile cannot be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    Unknown(String),
    /// It was not added by the API.
    #[error("profile `{name}` is {} and cannot be deleted",
        if *origin == ProfileSource::Builtin { "built in" } else { "from a file" })]
    NotFromApi {
        /// Its name.
        name: String,
        /// Its source.
        origin: ProfileSource,
    },
}

impl Library {
    /// The built-in profiles.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Library> = LazyLock::new(|| {
            let mut library = Library::default();
            for (name, profile) in builtin::all() {
                library.put(name.to_owned(), ProfileSource::Builtin, Arc::new(profile));
            }
            library
        });
        BUILTIN.clone()
    }

    /// Adds a profile file, in place of the file's previous profile. The name is given in the file,
    /// or else the file name without extension. `variables` expand in it.
    ///
    /// An error if another file has a profile of that name.
    pub fn with_file(
        &self,
        file: &str,
        text: &str,
        variables: Variables<'_>,
    ) -> Result<Self, Vec<DocumentError>> {
        let profile = profile::parse_file(file, text, variables)?;
        let name = profile
            .name
            .clone()
            .unwrap_or_else(|| stem(file).to_owned());
        check_name(&name, file).map_err(|error| vec![error])?;
        if let Some(other) = self.file_of(&name).filter(|other| *other != file) {
            let message =
                format!("{other} has a profile called `{name}` too; give one of them another name");
            return Err(vec![DocumentError::whole(file, message)]);
        }
        Ok(self.with(name, ProfileSource::File, profile))
    }

    /// The library of a workspace: built-in profiles, profiles from files, and its own API profiles
    /// instead of those without a workspace.
    #[must_use]
    pub fn of_workspace(&self, workspace: &str) -> Self {
        let mut view = Self {
            profiles: self.profiles.clone(),
            workspaces: BTreeMap::new(),
        };
        for name in self.profiles.keys() {
            view.remove(name, ProfileSource::Api);
        }
        for (name, profile) in self.workspaces.get(workspace).into_iter().flatten() {
            view.put(name.clone(), ProfileSource::Api, profile.clone());
        }
        view
    }

    /// [`Self::with_api`] for one workspace.
    pub fn with_api_of(
        &self,
        workspace: &str,
        name: &str,
        profile: Profile,
    ) -> Result<Self, DocumentError> {
        let view = self.of_workspace(workspace).with_api(name, profile)?;
        let mut library = self.clone();
        if let Some((ProfileSource::Api, profile)) = view.get(name) {
            let own = library.workspaces.entry(workspace.to_owned()).or_default();
            own.insert(name.to_owned(), profile.clone());
        }
        Ok(library)
    }

    /// [`Self::without_api`] for one workspace.
    pub fn without_api_of(&self, workspace: &str, name: &str) -> Result<Self, RemoveError> {
        self.of_workspace(workspace).without_api(name)?;
        let mut library = self.clone();
        if let Some(own) = library.workspaces.get_mut(workspace) {
            own.remove(name);
            if own.is_empty() {
                library.workspaces.remove(workspace);
            }
        }
        Ok(library)
    }

    /// Adds a profile of the API under `name`. The profiles it extends must exist.
    pub fn with_api(&self, name: &str, profile: Profile) -> Result<Self, DocumentError> {
        check_name(name, &profile.file)?;
        if let Some(own) = profile.name.as_ref().filter(|own| *own != name) {
            let message = format!("it is put as `{name}` and names itself `{own}`; make them one");
            return Err(DocumentError::whole(&profile.file, message));
        }
        let library = self.with(name.to_owned(), ProfileSource::Api, profile);
        library.rules_of(name)?;
        Ok(library)
    }

    /// Removes the API's profile `name`. A file's or built-in profile of that name takes effect
    /// again.
    pub fn without_api(&self, name: &str) -> Result<Self, RemoveError> {
        match self.get(name) {
            None => Err(RemoveError::Unknown(name.to_owned())),
            Some((ProfileSource::Api, _)) => {
                let mut library = self.clone();
                library.remove(name, ProfileSource::Api);
                Ok(library)
            }
            Some((origin, _)) => Err(RemoveError::NotFromApi {
                name: name.to_owned(),
                origin,
            }),
        }
    }

    /// Removes the profiles from files, to read the directory again.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let mut library = self.clone();
        for name in self.profiles.keys() {
            library.remove(name, ProfileSource::File);
        }
        library
    }

    /// The name of the profile from a file.
    pub fn name_of_file(&self, file: &str) -> Option<&str> {
        let mut names = self.profiles.keys();
        names
            .find(|name| self.file_of(name) == Some(file))
            .map(String::as_str)
    }

    /// The file with a profile of that name, even if another one takes precedence.
    fn file_of(&self, name: &str) -> Option<&str> {
        let profile = self.profiles.get(name)?.get(&ProfileSource::File)?;
        Some(&profile.file)
    }

    /// The profile in effect under a name, and its source.
    pub fn get(&self, name: &str) -> Option<(ProfileSource, &Arc<Profile>)> {
        let (source, profile) = self.profiles.get(name)?.last_key_value()?;
        Some((*source, profile))
    }

    /// All names with the profile in effect, in order.
    pub fn list(&self) -> Vec<Listed> {
        self.names()
            .filter_map(|name| {
                let (source, profile) = self.get(name)?;
                Some(Listed {
                    name: name.to_owned(),
                    source,
                    description: profile.redacted_description(),
                    rules: profile.rules.len(),
                })
            })
            .collect()
    }

    /// Every name, in order.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The compiled rules of a profile and of all it extends. `none` is the empty set.
    pub fn rule_set(&self, name: &str, tools: &ToolNames) -> Result<RuleSet, DocumentError> {
        if name == NONE {
            return Ok(RuleSet::default());
        }
        RuleSet::compile(self.rules_of(name)?, tools)
    }

    /// The compiled rules of a profile outside the library: inline chaos
    /// ([`crate::profile::parse_chaos`]) or a draft under validation.
    pub fn rule_set_of(
        &self,
        profile: &Profile,
        tools: &ToolNames,
    ) -> Result<RuleSet, DocumentError> {
        RuleSet::compile(self.flatten(profile.name.as_deref(), profile)?, tools)
    }

    /// Errors between profiles: missing `extends` names, and cycles.
    pub fn check(&self) -> Vec<DocumentError> {
        let broken = self.names().filter_map(|name| self.rules_of(name).err());
        broken.collect()
    }

    fn rules_of(&self, name: &str) -> Result<Vec<Arc<Rule>>, DocumentError> {
        let Some((_, profile)) = self.get(name) else {
            let hint = did_you_mean(name, self.names());
            return Err(DocumentError::whole(
                "profiles",
                format!("unknown profile `{name}`{hint}"),
            ));
        };
        self.flatten(Some(name), profile)
    }

    /// The rules of a profile and of all it extends, in order of precedence. Families come first,
    /// then a profile's own rules before those it extends. Each profile is used once, and so is
    /// each id.
    fn flatten(
        &self,
        name: Option<&str>,
        profile: &Profile,
    ) -> Result<Vec<Arc<Rule>>, DocumentError> {
        let mut walk = ExtendsWalk::default();
        walk.path.extend(name.map(str::to_owned));
        walk.enter(self, profile)?;
        let mut rules = walk.rules;
        rules.sort_by_key(|rule| rule.family());
        Ok(rules)
    }

    #[must_use]
    fn with(&self, name: String, source: ProfileSource, profile: Profile) -> Self {
        let mut library = self.clone();
        library.put(name, source, Arc::new(profile));
        library
    }

    fn put(&mut self, name: String, source: ProfileSource, profile: Arc<Profile>) {
        let held = self.profiles.entry(name).or_default();
        held.insert(source, profile);
    }

    fn remove(&mut self, name: &str, source: ProfileSource) {
        if let Some(held) = self.profiles.get_mut(name) {
            held.remove(&source);
            if held.is_empty() {
                self.profiles.remove(name);
            }
        }
    }
}

/// A traversal of a profile and those it extends.
#[derive(Default)]
struct ExtendsWalk {
    rules: Vec<Arc<Rule>>,
    ids: HashSet<String>,
    done: HashSet<String>,
    /// The names from the first profile to the current one.
    path: Vec<String>,
}

impl ExtendsWalk {
    fn enter(&mut self, library: &Library, profile: &Profile) -> Result<(), DocumentError> {
        for rule in &profile.rules {
            if self.ids.insert(rule.id.clone()) {
                self.rules.push(rule.clone());
            }
        }
        for (index, Extends { name, position }) in profile.extends.iter().enumerate() {
            let error = |message: String| DocumentError {
                file: profile.file.to_string(),
                position: *position,
                pointer: format!("/extends/{index}"),
                message,
            };
            self.path.push(name.clone());
            if self.path[..self.path.len() - 1].contains(name) {
                let chain = self.path.join(" → ");
                return Err(error(format!("`extends` goes round in a circle: {chain}")));
            }
            let Some((_, extended)) = library.get(name) else {
                let hint = did_you_mean(name, library.names());
                return Err(error(format!(
                    "unknown profile `{name}` in `extends`{hint}"
                )));
            };
            if self.done.insert(name.clone()) {
                self.enter(library, extended)?;
            }
            self.path.pop();
        }
        Ok(())
    }
}

fn check_name(name: &str, file: &str) -> Result<(), DocumentError> {
    if is_profile_name(name) {
        return Ok(());
    }
    let message = if name == NONE {
        "`none` stands for no chaos at all; no profile can be called so".to_owned()
    } else {
        format!("`{name}` is not a valid profile name; allowed: 1 to 64 of a-z, 0-9, `_` and `-`")
    };
    Err(DocumentError::whole(file, message))
}
