//! Watching files: told once after they have come to rest.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// How long files must rest: editors and deployments write in several steps.
const REST: Duration = Duration::from_millis(200);

/// Something watched has changed. Dropping it ends the watching.
#[derive(Debug)]
pub(crate) struct Changes {
    events: mpsc::UnboundedReceiver<()>,
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Watches a file and a directory, whichever are given. What cannot be watched is logged:
    /// SIGHUP still reloads.
    pub(crate) fn of(file: Option<&Path>, directory: Option<&Path>) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        if file.is_none() && directory.is_none() {
            return Self {
                events,
                _watcher: None,
            };
        }
        let interest = Interest {
            // The file's directory is watched, as editors put a new file in its place.
            file: file.and_then(|file| std::path::absolute(file).ok()),
            directory: directory.and_then(|directory| std::path::absolute(directory).ok()),
        };
        let places: Vec<PathBuf> = interest.places();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| interest.concerns(&event)) {
                // The receiver is gone when the daemon stops.
                let _ = sender.send(());
            }
        });
        let watcher = watcher.and_then(|mut watcher| {
            for place in &places {
                watcher.watch(place, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        match watcher {
            Ok(watcher) => Self {
                events,
                _watcher: Some(watcher),
            },
            Err(error) => {
                tracing::warn!(%error, "files are not watched; send SIGHUP after a change");
                Self {
                    events,
                    _watcher: None,
                }
            }
        }
    }

    /// Waits until something has changed and rested.
    pub(crate) async fn next(&mut self) {
        if self.events.recv().await.is_none() {
            // Nothing is watched.
            std::future::pending::<()>().await;
        }
        while let Ok(Some(())) = tokio::time::timeout(REST, self.events.recv()).await {}
    }
}

/// What is watched.
#[derive(Debug)]
struct Interest {
    file: Option<PathBuf>,
    directory: Option<PathBuf>,
}

impl Interest {
    fn places(&self) -> Vec<PathBuf> {
        let parent = self
            .file
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned);
        let mut places: Vec<_> = parent.into_iter().chain(self.directory.clone()).collect();
        places.dedup();
        places
    }

    /// Whether an event is about what is watched. Reading a file changes nothing; a link named
    /// `..data` is how Kubernetes swaps a mounted directory's files.
    fn concerns(&self, event: &notify::Event) -> bool {
        let in_directory = |path: &Path| {
            self.directory
                .as_deref()
                .is_some_and(|directory| path.starts_with(directory))
        };
        !matches!(event.kind, EventKind::Access(_))
            && event.paths.iter().any(|path| {
                Some(path) == self.file.as_ref()
                    || in_directory(path)
                    || path.file_name().is_some_and(|name| name == "..data")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_replaced_file_and_a_new_profile_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("squall.yaml");
        let profiles = directory.path().join("profiles");
        std::fs::create_dir(&profiles).unwrap();
        std::fs::write(&file, "").unwrap();
        let mut changes = Changes::of(Some(&file), Some(&profiles));
        let draft = directory.path().join("draft");
        std::fs::write(&draft, "proxy:\n").unwrap();
        std::fs::rename(&draft, &file).unwrap();
        changes.next().await;
        std::fs::write(profiles.join("new.yaml"), "chaos: {}\n").unwrap();
        changes.next().await;
    }
}
