//! Loads vocabularies of models when a rule first counts tokens with them.
//!
//! Loading takes some tenths of a second, on a thread of its own; only the exchange that needs it
//! waits.

use squall_dialects::tokens::Counting;

/// Loads the vocabulary for a model's calls; for an unknown model, all of them.
pub(crate) async fn load(model: Option<&str>) {
    let unread: Vec<Counting> = match model {
        Some(model) => vec![Counting::of_model(model)],
        None => vec![Counting::O200k, Counting::Cl100k],
    };
    let unread: Vec<_> = unread.into_iter().filter(|it| !it.is_read()).collect();
    if unread.is_empty() {
        return;
    }
    let reading = tokio::task::spawn_blocking(move || unread.iter().for_each(|it| it.read()));
    if let Err(error) = reading.await {
        tracing::error!(%error, "a vocabulary could not be read");
    }
}
