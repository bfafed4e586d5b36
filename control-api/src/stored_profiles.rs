//! Profiles that were put by API: every version in the store, the newest in the library of chaos.
//!
//! A change is first validated ([`Chaos::would_edit`]), then written, then applied. So the store holds no
//! rejected change, and a change that was not stored takes no effect. Other daemons may write to the same store:
//! [`StoredProfiles::follow`] applies their changes at once.
//!
//! ```text
//! PUT ─▶ validate ─▶ write after version n ─▶ edit the library ─▶ update activations
//!            ▲                    │ another daemon has written n + 1
//!            └────────────────────┘
//! ```

use squall_documents::VariableError;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use squall_documents::{DocumentError, Variables};
use squall_harness::digest::sha256;
use squall_journal::quota::Quota;
use squall_profiles::library::{Library, ProfileSource, RemoveError};
use squall_profiles::profile::{self, Profile};
use squall_proxy::chaos::{Chaos, EditError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access::Caller;
use crate::lock;
use crate::nearest::no_profile;
use crate::outage::Outage;
use crate::problem::ApiProblem;
use crate::readiness::BrokenFile;
use crate::store::{
    DEFAULT_WORKSPACE, DocumentKey, DocumentKind, DocumentText, Notice, Store, StoreError,
    StoredDocument,
};
use crate::stored_documents::{self, Written};
use crate::stored_tokens::StoredTokens;
use crate::trust::Trust;

/// Limit of stored profiles. All are in memory, and read when the daemon starts.
const STORED: Quota = Quota {
    what: "profiles",
    each: 250,
    all: 1000,
    remedy: "delete one of them first",
};

/// Limit of the bytes of their newest versions. A profile takes up to 25 times its size in memory.
const STORED_BYTES: Quota = Quota {
    what: "bytes of profiles",
    each: 4 << 20,
    all: 16 << 20,
    remedy: "delete a profile first",
};

/// Pause before it listens again.
const AGAIN: Duration = Duration::from_secs(1);

/// Profiles that were put by API, of one daemon.
#[derive(Debug)]
pub struct StoredProfiles {
    store: Store,
    chaos: Arc<Chaos>,
    /// Serializes changes.
    turn: tokio::sync::Mutex<()>,
    /// Versions that cannot be used here, with the reason; the library keeps the last valid version of each.
    broken: Mutex<BTreeMap<DocumentKey, (i64, String)>>,
    /// Why changes of other daemons are not received.
    disconnected: Outage,
    /// Notified of changes of other daemons, once profiles and tokens are read.
    noticed: Notify,
    /// Variables that documents without values of their own may use.
    trust: Arc<Trust>,
}

impl StoredProfiles {
    /// Over a store; [`Self::refresh`] reads its profiles.
    pub fn over(store: Store, chaos: Arc<Chaos>, trust: Arc<Trust>) -> Arc<Self> {
        Arc::new(Self {
            store,
            chaos,
            turn: tokio::sync::Mutex::default(),
            broken: Mutex::default(),
            disconnected: Outage::of("changes of other daemons are not received"),
            noticed: Notify::new(),
            trust,
        })
    }

    /// Stored profiles that are not in the library, with the reason; also a lost connection to other daemons.
    pub fn broken(&self) -> Vec<BrokenFile> {
        let in_store = |error| BrokenFile {
            file: "store".to_owned(),
            error,
        };
        let broken = lock(&self.broken);
        let mut found: Vec<_> = broken
            .iter()
            .map(|(key, (version, why))| {
                // This list is public, so it hides names of other workspaces.
                in_store(match key.workspace.as_str() {
                    DEFAULT_WORKSPACE => format!("{}, version {version}: {why}", shown(key)),
                    _ => "a profile of another workspace cannot be used; the log names it and the reason"
                        .to_owned(),
                })
            })
            .collect();
        found.extend(self.disconnected.broken());
        found
    }

    /// Reads and applies what the store has and the library has not. For a version that is invalid here
    /// [`Self::broken`] has the error; the last valid version stays.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        self.read_stored().await
    }

    async fn read_stored(&self) -> Result<(), StoreError> {
        let mut broken = BTreeMap::new();
        let mut waiting = Vec::new();
        for document in self.store.documents(DocumentKind::Profile).await? {
            let key = profile_key(&document.workspace, &document.name);
            let library = view(&self.chaos.library(), &key.workspace);
            let held = match library.get(&key.name) {
                Some((ProfileSource::Api, profile)) => Some(profile),
                _ => None,
            };
            match &document.text {
                None if held.is_none() => {}
                None => {
                    let edited = self.chaos.edit(|library| changed(library, &key, None));
                    if let Err(error) = edited {
                        broken.insert(key, (document.version, error.to_string()));
                    }
                }
                Some(text) if held.is_some_and(|held| *held.text == text.body) => {}
                Some(text) => match parse(&key.name, text, held, &self.trust) {
                    Ok(profile) => waiting.push((key, document.version, profile, String::new())),
                    Err(why) => drop(broken.insert(key, (document.version, why))),
                },
            }
        }
        // Until no more is accepted: a profile may extend a later one.
        loop {
            let before = waiting.len();
            waiting.retain_mut(|(key, _, profile, why)| {
                let edited = self
                    .chaos
                    .edit(|library| changed(library, key, Some(profile)));
                edited.map_err(|error| *why = error.to_string()).is_err()
            });
            if waiting.len() == before {
                break;
            }
        }
        broken.extend((waiting.into_iter()).map(|(key, version, _, why)| (key, (version, why))));
        let mut former = lock(&self.broken);
        for (key, found) in &broken {
            if former.get(key) != Some(found) {
                let why = &found.1;
                tracing::error!(
                    "store: {}: {why}; the previous version stays in force",
                    shown(key)
                );
            }
        }
        *former = broken;
        Ok(())
    }

    /// Applies changes of other daemons, tokens included, as soon as they are written, until `stopping`.
    pub async fn follow(self: Arc<Self>, tokens: Arc<StoredTokens>, stopping: CancellationToken) {
        let following = async {
            loop {
                let Err(error) = self.follow_until_lost(&tokens).await;
                self.disconnected.begin(&error);
                tokio::time::sleep(AGAIN).await;
            }
        };
        if self.store.is_shared() {
            stopping.run_until_cancelled(Box::pin(following)).await;
        }
    }

    async fn follow_until_lost(&self, tokens: &StoredTokens) -> Result<Infallible, StoreError> {
        let Some(mut listener) = self.store.listen().await? else {
            return std::future::pending().await;
        };
        // Reads before the first notice too: earlier notices may be lost.
        let mut notice = Notice::Stored;
        loop {
            if notice == Notice::Stored {
                tokens.refresh().await?;
                self.refresh().await?;
            }
            self.disconnected.end();
            self.noticed.notify_one();
            notice = listener.changed().await?;
        }
    }

    /// Resolves after a change of another daemon, or when notices are received again.
    pub(crate) async fn noticed(&self) {
        self.noticed.notified().await;
    }

    /// Puts a profile, or deletes it, with the caller's audit entry. `check` must accept the [`digest`] of the profile that
    /// it replaces; `None`: there is no such profile. `at` is milliseconds since 1970.
    pub(crate) async fn edit(
        &self,
        key: &DocumentKey,
        new: Option<(Profile, DocumentText)>,
        at: u64,
        caller: &Caller,
        check: impl Fn(Option<&str>) -> Result<(), ApiProblem>,
    ) -> Result<Written, ApiProblem> {
        let _turn = self.turn.lock().await;
        if self.store.is_shared() {
            self.read_stored().await?;
        }
        let (profile, text) = new.unzip();
        if let Some(text) = &text {
            self.check_quota(key, text.body.len()).await?;
        }
        let is_in_library = || {
            let library = view(&self.chaos.library(), &key.workspace);
            matches!(library.get(&key.name), Some((ProfileSource::Api, _)))
        };
        let created = !is_in_library();
        let change = |library: &Library| changed(library, key, profile.as_ref());
        let rejected = |error| self.problem(key, error);
        let check = |held: Option<&StoredDocument>| {
            // The profile in force, which GET shows, even if the newest stored version cannot be used here.
            let library = view(&self.chaos.library(), &key.workspace);
            let current = library.get(&key.name).map(|(_, profile)| digest(profile));
            check(current.as_deref())?;
            // A stored profile that is not in the library can still be deleted.
            if profile.is_none() && held.is_some() && !is_in_library() {
                return Ok(());
            }
            self.chaos.would_edit(change).map_err(rejected)
        };
        let written =
            stored_documents::write(&self.store, key, text.as_ref(), at, caller, check).await?;
        lock(&self.broken).remove(key);
        let edited = self.chaos.edit(change);
        match edited {
            Err(EditError::Change(NotChanged::Remove(_))) | Ok(()) => {
                Ok(Written { created, ..written })
            }
            Err(error) => {
                let why = (written.version, error.to_string());
                lock(&self.broken).insert(key.clone(), why);
                Err(rejected(error))
            }
        }
    }

    async fn check_quota(&self, key: &DocumentKey, bytes: usize) -> Result<(), ApiProblem> {
        let held = self.store.document_sizes(key.kind).await?;
        let others = held
            .iter()
            .filter(|(workspace, name, _)| (workspace, name) != (&key.workspace, &key.name));
        let count = others.clone().map(|(workspace, ..)| workspace);
        let sizes = others.map(|(workspace, _, bytes)| (workspace, *bytes));
        STORED
            .check(&key.workspace, count)
            .and_then(|()| STORED_BYTES.check_sizes(&key.workspace, bytes, sizes))
            .map_err(|over| ApiProblem::conflict(over.to_string()))
    }

    fn problem(&self, key: &DocumentKey, error: EditError<NotChanged>) -> ApiProblem {
        match error {
            EditError::Change(NotChanged::Profile(error)) => ApiProblem::profile(&[error]),
            EditError::Change(NotChanged::Remove(RemoveError::Unknown(name))) => {
                let library = view(&self.chaos.library(), &key.workspace);
                ApiProblem::not_found(no_profile(&library, &name))
            }
            EditError::Change(NotChanged::Remove(error @ RemoveError::NotFromApi { .. })) => {
                ApiProblem::conflict(error.to_string())
            }
            error @ EditError::InForce { .. } => ApiProblem::conflict(error.to_string()),
        }
    }
}

/// Why a library rejects a change.
#[derive(Debug, thiserror::Error)]
enum NotChanged {
    #[error(transparent)]
    Profile(DocumentError),
    #[error(transparent)]
    Remove(RemoveError),
}

/// The key of a stored profile.
pub(crate) fn profile_key(workspace: &str, name: &str) -> DocumentKey {
    DocumentKey {
        workspace: workspace.to_owned(),
        kind: DocumentKind::Profile,
        name: name.to_owned(),
    }
}

/// Digest of a profile's text and of the values of its variables. The values are hashed with a key of this process,
/// so that nobody can find them by trying.
pub(crate) fn digest(profile: &Profile) -> String {
    #[expect(clippy::disallowed_methods, reason = "it draws nothing")]
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    match profile.version() {
        (text, values) if values.is_empty() => sha256(&**text),
        (text, values) => sha256(format!("{text}{}", KEY.hash_one(values))),
    }
}

/// The part of a library that a workspace sees.
pub(crate) fn view(library: &Library, workspace: &str) -> Library {
    match workspace {
        DEFAULT_WORKSPACE => library.clone(),
        workspace => library.of_workspace(workspace),
    }
}

/// A library with the profile put under this key, or without it.
fn changed(
    library: &Library,
    key: &DocumentKey,
    profile: Option<&Profile>,
) -> Result<Library, NotChanged> {
    let (workspace, name) = (key.workspace.as_str(), key.name.as_str());
    match (workspace, profile.cloned()) {
        (DEFAULT_WORKSPACE, Some(profile)) => {
            library.with_api(name, profile).map_err(NotChanged::Profile)
        }
        (_, Some(profile)) => library
            .with_api_of(workspace, name, profile)
            .map_err(NotChanged::Profile),
        (DEFAULT_WORKSPACE, None) => library.without_api(name).map_err(NotChanged::Remove),
        (_, None) => library
            .without_api_of(workspace, name)
            .map_err(NotChanged::Remove),
    }
}

fn shown(key: &DocumentKey) -> String {
    match key.workspace.as_str() {
        DEFAULT_WORKSPACE => format!("profile `{}`", key.name),
        workspace => format!("profile `{}` of workspace `{workspace}`", key.name),
    }
}

/// Parses a stored profile. Values of variables are never stored. They come from this daemon's `former` profile of that
/// name or, for a document sent without values, from the config's list.
fn parse(
    name: &str,
    text: &DocumentText,
    former: Option<&Arc<Profile>>,
    trust: &Trust,
) -> Result<Profile, String> {
    let parsed = if let Some(needed) = &text.variables {
        let known: BTreeMap<&str, &str> = former
            .map(|former| former.version().1.iter().collect())
            .unwrap_or_default();
        let missing = needed
            .iter()
            .filter(|name| !known.contains_key(name.as_str()));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(format!(
                "values of variables are never stored, and this daemon does not have those of {}; put the profile \
                 again with `squall profile put`",
                missing.join(", ")
            ));
        }
        let lookup = |name: &str| {
            let value = known.get(name).map(|value| (*value).to_owned());
            value.ok_or(VariableError::NotSet)
        };
        profile::parse_file(name, &text.body, Variables::From(&lookup))
    } else {
        trust.variables(|variables| profile::parse_file(name, &text.body, variables))
    };
    parsed.map_err(|errors| match errors.as_slice() {
        [first, _, ..] => format!("{first} (and {} more)", errors.len() - 1),
        errors => errors.iter().map(ToString::to_string).collect(),
    })
}
