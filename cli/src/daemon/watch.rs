//! Watches files, and reports a change once they are stable.
//!
//! It polls the files by name every second. Other files in their directories cost nothing. Every way of replacing
//! a file looks the same: overwrite, rename, or another link, as Kubernetes swaps a mounted directory.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::profiles;
use crate::config::Config;

/// Polling interval.
const EVERY: Duration = Duration::from_secs(1);

/// How long files must be unchanged: editors and deployments write in several steps.
const REST: Duration = Duration::from_millis(200);

/// Changes of the watched files.
#[derive(Debug)]
pub(crate) struct Changes {
    watched: Watched,
    /// Their last stable state.
    seen: Stamps,
}

impl Changes {
    /// Watches the configuration's file and its profile files, if any, from now on.
    pub(crate) fn of(config: &Config) -> Self {
        Self::watching(Watched::of(config))
    }

    /// Watches the files of another configuration, if they are others.
    pub(crate) fn watch(&mut self, config: &Config) {
        let watched = Watched::of(config);
        if watched != self.watched {
            *self = Self::watching(watched);
        }
    }

    fn watching(watched: Watched) -> Self {
        let seen = watched.look();
        Self { watched, seen }
    }

    /// Waits until something has changed and is stable. Cancelling the wait loses no change.
    pub(crate) async fn next(&mut self) {
        let mut last = loop {
            tokio::time::sleep(EVERY).await;
            let now = self.look().await;
            if now != self.seen {
                break now;
            }
        };
        loop {
            tokio::time::sleep(REST).await;
            let now = self.look().await;
            if now == last {
                self.seen = now;
                return;
            }
            last = now;
        }
    }

    /// File systems may block; the signals and the API on this thread must not.
    async fn look(&self) -> Stamps {
        let watched = self.watched.clone();
        let look = tokio::task::spawn_blocking(move || watched.look()).await;
        // The runtime is shutting down.
        look.unwrap_or_else(|_| self.seen.clone())
    }
}

/// The watched files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watched {
    files: Vec<PathBuf>,
    directory: Option<PathBuf>,
}

/// The existing files, links followed, each with device, inode, size and times, one of which changes with it.
type Stamps = BTreeMap<PathBuf, [i128; 5]>;

impl Watched {
    fn of(config: &Config) -> Self {
        let files = [Some(&config.file), config.profile_file.as_ref()];
        let files = files.into_iter().flatten().cloned();
        Self {
            files: files.filter(|file| !file.as_os_str().is_empty()).collect(),
            directory: config.profiles.clone(),
        }
    }

    fn look(&self) -> Stamps {
        let listed = self.directory.as_deref().map(profiles::list);
        // An unreadable directory counts as empty.
        let profiles = listed.and_then(Result::ok).unwrap_or_default();
        let files = self.files.iter().cloned().chain(profiles);
        files
            .filter_map(|file| {
                let stamp = stamp(&file)?;
                Some((file, stamp))
            })
            .collect()
    }
}

fn stamp(file: &Path) -> Option<[i128; 5]> {
    let found = std::fs::metadata(file).ok()?;
    let time = |seconds: i64, nanoseconds: i64| {
        i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
    };
    Some([
        found.dev().into(),
        found.ino().into(),
        found.size().into(),
        time(found.mtime(), found.mtime_nsec()),
        time(found.ctime(), found.ctime_nsec()),
    ])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A description, whether the change must be seen, and the change.
    type Act = (&'static str, bool, Box<dyn Fn()>);

    /// An old configuration file beside a directory of profiles, and a watcher of both.
    fn watched() -> (tempfile::TempDir, Watched) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("squall.yaml");
        let profiles = directory.path().join("profiles");
        fs::create_dir(&profiles).unwrap();
        fs::write(&file, "api: {}\n").unwrap();
        fs::write(profiles.join("one.yaml"), "chaos: {}\n").unwrap();
        let long_ago = fs::File::options().write(true).open(&file).unwrap();
        long_ago.set_modified(std::time::UNIX_EPOCH).unwrap();
        let watched = Watched {
            files: vec![file],
            directory: Some(profiles),
        };
        (directory, watched)
    }

    #[test]
    fn every_way_to_change_what_is_watched_is_seen_and_nothing_else() {
        let (directory, watched) = watched();
        let at = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &'static str| {
            let file = at(name);
            Box::new(move || fs::write(&file, text).unwrap()) as Box<dyn Fn()>
        };
        let rename = |from: &str, to: &str| {
            let (from, to) = (at(from), at(to));
            Box::new(move || fs::rename(&from, &to).unwrap()) as Box<dyn Fn()>
        };
        let acts: [Act; 10] = [
            ("nothing", false, Box::new(|| {})),
            ("a neighbour", false, write("busy.log", "x")),
            ("a draft", false, write("profiles/.one.yaml.swp", "x")),
            ("other files", false, write("profiles/readme.md", "x")),
            ("as long as before", true, write("squall.yaml", "api: []\n")),
            ("longer", true, write("profiles/one.yaml", "name: one\n")),
            ("a new profile", true, write("profiles/two.yaml", "")),
            ("renamed over", true, rename("busy.log", "squall.yaml")),
            ("gone", true, rename("profiles/two.yaml", "two.yaml")),
            ("a directory gone", true, rename("profiles", "elsewhere")),
        ];
        for (act, changes, change) in acts {
            let before = watched.look();
            change();
            assert_eq!(watched.look() != before, changes, "{act}");
        }
    }

    #[test]
    fn a_directory_that_is_swapped_behind_its_links_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for version in ["..1", "..2"] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("squall.yaml"), "api: {}\n").unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/squall.yaml", at("squall.yaml")).unwrap();
        for watched in [
            Watched {
                files: vec![at("squall.yaml")],
                directory: None,
            },
            Watched {
                files: Vec::new(),
                directory: Some(directory.path().to_owned()),
            },
        ] {
            let before = watched.look();
            assert_eq!(before.len(), 1);
            // As Kubernetes does: a new link renamed over the old one.
            let target = fs::read_link(at("..data")).unwrap();
            let other = if target == Path::new("..1") {
                "..2"
            } else {
                "..1"
            };
            symlink(other, at("..data_tmp")).unwrap();
            fs::rename(at("..data_tmp"), at("..data")).unwrap();
            assert_ne!(watched.look(), before);
        }
    }

    #[tokio::test]
    async fn a_change_is_reported_once_and_one_before_the_wait_too() {
        let (directory, watched) = watched();
        let mut changes = Changes::watching(watched);
        let draft = directory.path().join("draft");
        fs::write(&draft, "proxy:\n").unwrap();
        fs::rename(&draft, directory.path().join("squall.yaml")).unwrap();
        changes.next().await;
        assert_eq!(changes.look().await, changes.seen);
        fs::write(directory.path().join("profiles/new.yaml"), "chaos: {}\n").unwrap();
        changes.next().await;
    }
}
