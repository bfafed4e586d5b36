//! Profiles that were put by API: every version in the store, the newest in the library of chaos.
//!
//! A change is first validated ([`Chaos::would_edit`]), then written, then applied. So the store holds no
//! rejected change, and a change that was not stored takes no effect. Other daemons may write to the same store:
//! a change names the version that it replaces. If that is stale, the daemon reads the new versions and retries.
//! [`StoredProfiles::follow`] applies their changes at once.
//!
//! ```text
//! PUT ─▶ validate ─▶ write after version n ─▶ edit the library ─▶ update activations
//!            ▲                    │ another daemon has written n + 1
//!            └───── refresh ◀─────┘
//! ```

mod key;
mod reading;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use squall_documents::DocumentError;
use squall_journal::quota::{OverQuota, Quota};
use squall_profiles::library::{Library, RemoveError, Source};
use squall_profiles::profile::Profile;
use squall_proxy::chaos::{Chaos, EditError};
use tokio_util::sync::CancellationToken;

pub(crate) use self::key::ProfileKey;
use self::reading::{Held, documents, lay};
use crate::audit::{Call, Draft};
use crate::readiness::Broken;
use crate::store::{Change, DEFAULT_WORKSPACE, Document, Store, StoreError, WriteError};
use crate::stored_documents::Edited;
use crate::stored_tokens::StoredTokens;
use crate::tasks;
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

/// Attempts at a change that others overtake.
const TRIES: usize = 5;

/// Profiles that were put by API, of one daemon.
#[derive(Debug)]
pub struct StoredProfiles {
    store: Store,
    /// Serializes changes.
    turn: tokio::sync::Mutex<()>,
    held: Mutex<BTreeMap<ProfileKey, Held>>,
    /// Why changes of other daemons are not received.
    deaf: Mutex<Option<StoreError>>,
    /// Variables that documents without values of their own may use.
    trust: Arc<Trust>,
}

/// A change of a profile.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// Puts it; `variables` are the names that it has values for, `None` when it uses none.
    Put {
        profile: Profile,
        variables: Option<Vec<String>>,
    },
    /// Deletes it.
    Delete,
}

/// Why a profile was not changed.
#[derive(Debug)]
pub(crate) enum NotEdited<E> {
    /// The caller's guard rejected it, or the change itself.
    Refused(E),
    /// The new profile is invalid among the others.
    Profile(DocumentError),
    /// No such profile can be deleted.
    Remove(RemoveError),
    /// It is in force and would become invalid.
    InForce {
        profile: String,
        source: DocumentError,
    },
    /// Too many profiles.
    Quota(OverQuota),
    /// It could not be written.
    Write(WriteError),
}

impl StoredProfiles {
    /// Reads the stored profiles into a library. It leaves out unreadable ones; [`Self::broken`] reports them.
    pub async fn load(
        store: Store,
        library: Library,
        trust: Arc<Trust>,
    ) -> Result<(Arc<Self>, Library), StoreError> {
        let documents = documents(&store).await?;
        let mut library = library;
        let mut held = BTreeMap::new();
        let (deleted, live): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|(_, document)| document.deleted);
        for (key, document) in deleted {
            held.insert(key, Held::of(&document, None));
        }
        let laid = lay(&live, &Library::default(), &trust, |key, profile| {
            library = key
                .put(&library, profile.clone())
                .map_err(|error| error.to_string())?;
            Ok(())
        });
        held.extend(laid);
        let stored = Self {
            store,
            turn: tokio::sync::Mutex::default(),
            held: Mutex::new(held),
            deaf: Mutex::default(),
            trust,
        };
        Ok((Arc::new(stored), library))
    }

    /// Without profiles, over an empty store.
    pub fn empty(store: Store, trust: Arc<Trust>) -> Arc<Self> {
        Arc::new(Self {
            store,
            turn: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            deaf: Mutex::default(),
            trust,
        })
    }

    /// What documents that arrive by API may do.
    pub fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    /// Their store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Stored profiles that are not in the library, with the reason; also a lost connection to other daemons.
    pub fn broken(&self) -> Vec<Broken> {
        let deaf = lock(&self.deaf).as_ref().map(|error| Broken {
            file: "store".to_owned(),
            error: format!("changes of other daemons are not heard: {error}"),
        });
        let held = self.held();
        let broken = held.iter().filter_map(|(key, held)| {
            let (version, why) = (held.version, held.broken.as_ref()?);
            // This list is public, so it hides names of other workspaces.
            let error = match key.workspace.as_str() {
                DEFAULT_WORKSPACE => format!("{key}, version {version}: {why}"),
                _ => "a profile of another workspace cannot be used; the log says which, and why"
                    .to_owned(),
            };
            Some(Broken {
                file: "store".to_owned(),
                error,
            })
        });
        broken.chain(deaf).collect()
    }

    /// The stored version of a profile that was put by API; `None` when there is none.
    pub(crate) fn version(&self, workspace: &str, name: &str) -> Option<i64> {
        let held = self.held();
        let held = held.get(&ProfileKey::of(workspace, name))?;
        (!held.deleted).then_some(held.version)
    }

    /// A version of a profile that was put by API, even if a later one replaced or deleted it.
    pub(crate) async fn at_version(
        &self,
        workspace: &str,
        name: &str,
        version: i64,
    ) -> Result<Option<Document>, StoreError> {
        let key = ProfileKey::of(workspace, name);
        let found = self.store.document(key.in_store(), version).await?;
        Ok(found.filter(|found| !found.deleted))
    }

    /// Reads and applies what other daemons have written. For a version that is invalid here [`Self::broken`] has
    /// the error; the last valid version stays.
    pub async fn refresh(&self, chaos: &Chaos) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        self.read_news(chaos).await
    }

    /// Applies changes of other daemons, tokens included, as soon as they are written, until `stopping`.
    pub async fn follow(
        self: Arc<Self>,
        chaos: Arc<Chaos>,
        tokens: Arc<StoredTokens>,
        stopping: CancellationToken,
    ) {
        if self.store.is_shared() {
            let hearing = Box::pin(self.hear(&chaos, &tokens));
            stopping.run_until_cancelled(hearing).await;
        }
    }

    async fn hear(&self, chaos: &Chaos, tokens: &StoredTokens) {
        loop {
            let Err(error) = self.hear_until_lost(chaos, tokens).await;
            if lock(&self.deaf).replace(error.clone()).is_none() {
                tracing::warn!("changes of other daemons are not heard: {error}");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn hear_until_lost(
        &self,
        chaos: &Chaos,
        tokens: &StoredTokens,
    ) -> Result<Infallible, StoreError> {
        let Some(mut listener) = self.store.listen().await? else {
            return std::future::pending().await;
        };
        loop {
            // Reads before the first notice too: earlier notices may be lost.
            tokens.refresh().await?;
            self.refresh(chaos).await?;
            if lock(&self.deaf).take().is_some() {
                tracing::info!("changes of other daemons are heard again");
            }
            listener.changed().await?;
        }
    }

    async fn read_news(&self, chaos: &Chaos) -> Result<(), StoreError> {
        let mut news = documents(&self.store).await?;
        {
            let held = self.held();
            news.retain(|(key, document)| {
                held.get(key)
                    .is_none_or(|held| held.version != document.version || held.broken.is_some())
            });
        }
        let (deleted, live): (Vec<_>, Vec<_>) =
            news.into_iter().partition(|(_, document)| document.deleted);
        let mut taken: Vec<(ProfileKey, Held)> = Vec::new();
        for (key, document) in deleted {
            let edited = chaos.edit(|library| {
                // A profile that never was in this library need not be deleted.
                let without = key.delete(library);
                Ok::<_, Infallible>(without.unwrap_or_else(|_| library.clone()))
            });
            let broken = edited.err().map(|error| error.to_string());
            let held = Held::of(&document, broken);
            taken.push((key, held));
        }
        let laid = lay(&live, &chaos.library(), &self.trust, |key, profile| {
            chaos
                .edit(|library| key.put(library, profile.clone()))
                .map_err(|error| match error {
                    EditError::Change(error) => error.to_string(),
                    other @ EditError::InForce { .. } => other.to_string(),
                })
        });
        taken.extend(laid);
        let mut all = self.held();
        for (key, held) in taken {
            let former = all.insert(key.clone(), held.clone());
            let known = former.is_some_and(|former| former.broken == held.broken);
            if let Some(why) = held.broken.filter(|_| !known) {
                tracing::error!("store: {key}: {why}; what held before still holds");
            }
        }
        Ok(())
    }

    /// Changes a profile and writes `call`'s audit entry, if `guard` accepts the library before the change. It
    /// continues to its end even if the client disconnects.
    pub(crate) async fn edit<E: Send + 'static>(
        self: Arc<Self>,
        chaos: Arc<Chaos>,
        key: ProfileKey,
        edit: Edit,
        at: u64,
        call: Option<Arc<Call>>,
        guard: impl Fn(&Library) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Edited, NotEdited<E>> {
        tasks::spawned(async move {
            let _turn = self.turn.lock().await;
            let entry = call.as_ref().map(|call| call.done(at));
            let edited = self.carry_out(&chaos, &key, &edit, at, entry.as_ref(), guard);
            let edited = edited.await;
            if let (Ok(_), Some(call)) = (&edited, call) {
                call.set_written();
            }
            edited
        })
        .await
    }

    async fn carry_out<E>(
        &self,
        chaos: &Chaos,
        key: &ProfileKey,
        edit: &Edit,
        at: u64,
        entry: Option<&Draft>,
        guard: impl Fn(&Library) -> Result<(), E>,
    ) -> Result<Edited, NotEdited<E>> {
        if self.store.is_shared() {
            self.read_news(chaos).await.map_err(WriteError::from)?;
        }
        for _ in 0..TRIES {
            let held = self.held().get(key).cloned();
            let over = held.as_ref().map_or(0, |held| held.version);
            if let Edit::Put { profile, .. } = edit {
                let all = self.held();
                let others = all
                    .iter()
                    .filter(|(other, held)| !held.deleted && *other != key)
                    .map(|(other, held)| (&other.workspace, held.bytes));
                STORED
                    .check(
                        &key.workspace,
                        others.clone().map(|(workspace, _)| workspace),
                    )
                    .and_then(|()| {
                        STORED_BYTES.check_sizes(&key.workspace, profile.text.len(), others)
                    })
                    .map_err(NotEdited::Quota)?;
            }
            let in_library = matches!(
                key.view(&chaos.library()).get(&key.name),
                Some((Source::Api, _))
            );
            // A stored profile that is not in the library can still be deleted.
            let only_stored = matches!(edit, Edit::Delete)
                && !in_library
                && held.is_some_and(|held| !held.deleted);
            if !only_stored {
                chaos.would_edit(|library| {
                    guard(&key.view(library)).map_err(NotEdited::Refused)?;
                    changed(library, key, edit)
                })?;
            }
            let version = match self
                .store
                .write_with(key.in_store(), edit.change(), over, at, entry)
                .await
            {
                Ok(version) => version,
                Err(WriteError::Stale) => {
                    self.read_news(chaos).await.map_err(WriteError::from)?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let made = if only_stored {
                Ok(())
            } else {
                chaos.edit(|library| changed(library, key, edit))
            };
            let broken = match &made {
                Err(EditError::InForce { source, .. }) => Some(source.to_string()),
                Err(EditError::Change(NotEdited::Profile(error))) => Some(error.to_string()),
                Ok(()) | Err(EditError::Change(_)) => None,
            };
            let held = Held {
                version,
                deleted: matches!(edit, Edit::Delete),
                bytes: edit.change().body().len(),
                broken,
            };
            self.held().insert(key.clone(), held);
            made?;
            return Ok(Edited {
                created: !in_library,
                version,
            });
        }
        Err(WriteError::Stale.into())
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<ProfileKey, Held>> {
        lock(&self.held)
    }
}

impl Edit {
    fn change(&self) -> Change<'_> {
        match self {
            Self::Put { profile, variables } => Change::Put {
                body: &profile.text,
                variables: variables.as_deref(),
            },
            Self::Delete => Change::Delete,
        }
    }
}

impl<E> From<WriteError> for NotEdited<E> {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl<E> From<EditError<Self>> for NotEdited<E> {
    fn from(error: EditError<Self>) -> Self {
        match error {
            EditError::Change(error) => error,
            EditError::InForce { profile, source } => Self::InForce { profile, source },
        }
    }
}

/// A poisoned lock is usable: the value is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn changed<E>(library: &Library, key: &ProfileKey, edit: &Edit) -> Result<Library, NotEdited<E>> {
    match edit {
        Edit::Put { profile, .. } => key
            .put(library, profile.clone())
            .map_err(NotEdited::Profile),
        Edit::Delete => key.delete(library).map_err(NotEdited::Remove),
    }
}
