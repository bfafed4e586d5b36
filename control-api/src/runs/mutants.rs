//! The store as the cache of mutants that a model wrote.

use squall_harness::mutations::MutantCache;
use squall_harness::reach::Pending;

use crate::store::Store;

/// Most cached lists of mutants of a workspace.
const KEPT: u64 = 10_000;

/// The cached mutants of a workspace. Without the store, the model writes them again.
pub(super) struct StoredMutants<'a> {
    pub(super) store: &'a Store,
    pub(super) workspace: &'a str,
}

impl MutantCache for StoredMutants<'_> {
    fn load<'a>(&'a self, key: &'a str) -> Pending<'a, Vec<String>> {
        Box::pin(async move {
            match self.store.mutants(self.workspace, key).await {
                Ok(texts) => texts
                    .and_then(|texts| serde_json::from_str(&texts).ok())
                    .unwrap_or_default(),
                Err(error) => {
                    tracing::warn!("cached mutants are not read: {error}");
                    Vec::new()
                }
            }
        })
    }

    fn save<'a>(&'a self, key: &'a str, texts: &'a [String]) -> Pending<'a, ()> {
        Box::pin(async move {
            let texts = serde_json::json!(texts).to_string();
            let saved = (self.store)
                .put_mutants(self.workspace, key, &texts, KEPT)
                .await;
            if let Err(error) = saved {
                tracing::warn!("mutants are not cached: {error}");
            }
        })
    }
}
