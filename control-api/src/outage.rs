//! Whether the store fails for one of its users.

use std::sync::Mutex;

use crate::lock;
use crate::readiness::BrokenFile;
use crate::store::StoreError;

/// What does not work while the store is away, and the store's last error. The log reports the beginning and the end.
#[derive(Debug)]
pub(crate) struct Outage {
    what: &'static str,
    error: Mutex<Option<StoreError>>,
}

impl Outage {
    /// Without a failure so far.
    pub(crate) fn of(what: &'static str) -> Self {
        Self {
            what,
            error: Mutex::default(),
        }
    }

    /// Notes that the store has failed.
    pub(crate) fn begin(&self, error: &StoreError) {
        if lock(&self.error).replace(error.clone()).is_none() {
            tracing::error!("{}: {error}", self.what);
        }
    }

    /// Notes that the store has worked.
    pub(crate) fn end(&self) {
        if lock(&self.error).take().is_some() {
            tracing::info!("the store is back after an outage: {}", self.what);
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        lock(&self.error).is_some()
    }

    /// The failure, for `/readyz`.
    pub(crate) fn broken(&self) -> Option<BrokenFile> {
        let error = lock(&self.error);
        error.as_ref().map(|error| BrokenFile {
            file: "store".to_owned(),
            error: format!("{}: {error}", self.what),
        })
    }
}
