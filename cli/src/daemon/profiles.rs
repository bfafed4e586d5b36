//! Profile files, read at start and after changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use squall_control_api::BrokenFile;
use squall_profiles::library::Library;

use crate::config::Config;
use crate::text::{self, environment};

/// An error of the configuration's profile directory, at the value that names it.
pub(super) fn broken(config: &Config, error: &str) -> BrokenFile {
    let path = config.profiles.as_deref().unwrap_or(Path::new(""));
    BrokenFile {
        file: config.file.display().to_string(),
        error: config.named(path, format!("`profiles`: {}: {error}", path.display())),
    }
}

/// Whether it is the configuration's single profile file, by any path.
fn is_named(config: &Config, file: &Path) -> bool {
    let canonical = |file: &Path| file.canonicalize().ok();
    let named = config.profile_file.as_deref().and_then(canonical);
    named.is_some_and(|named| canonical(file) == Some(named))
}

/// Accepted files by path, in their last good version.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileFiles {
    good: BTreeMap<PathBuf, String>,
}

/// The result of reading the files.
#[derive(Debug)]
pub(crate) struct FileProfiles {
    /// The library with the newest valid version of each file.
    pub(crate) library: Library,
    /// The errors of the other files.
    pub(crate) problems: Vec<BrokenFile>,
}

impl ProfileFiles {
    /// Reads the configuration's profile directory and profile file into `library`, and replaces the files read
    /// before. A broken file keeps its last good version.
    pub(crate) fn read(&mut self, config: &Config, library: &Library) -> FileProfiles {
        let mut reading = FileProfiles {
            library: library.without_files(),
            problems: Vec::new(),
        };
        let mut texts = Vec::new();
        if let Some(directory) = &config.profiles {
            let mut files = list(directory).unwrap_or_else(|error| {
                // Most likely it is being replaced, so the files read before remain.
                let problem = format!("the directory cannot be read: {error}");
                reading.problems.push(broken(config, &problem));
                self.good.keys().cloned().collect()
            });
            files.retain(|file| !is_named(config, file));
            let files = files.into_iter();
            texts.extend(files.map(|file| (read_in(directory, &file), file)));
        }
        let named = config.profile_file.iter();
        texts.extend(named.map(|file| (text::read(file), file.clone())));
        let former = std::mem::take(&mut self.good);
        // Unchanged files first, so that a new file cannot take the name of one of them.
        texts.sort_by_key(|(text, file)| former.get(file) != text.as_ref().ok());
        for (text, file) in texts {
            self.add(&mut reading, &file, text, former.get(&file));
        }
        reading
    }

    fn add(
        &mut self,
        reading: &mut FileProfiles,
        file: &Path,
        text: Result<String, String>,
        former: Option<&String>,
    ) {
        let name = file.display().to_string();
        let with = |text: String| {
            let library = reading.library.with_file(&name, &text, environment());
            let library = library.map_err(|errors| text::lines(&errors))?;
            Ok((library, text))
        };
        let (accepted, errors) = match text.map_err(|error| vec![error]).and_then(with) {
            Ok(accepted) => (Some(accepted), Vec::new()),
            // Falls back to the last good version.
            Err(errors) => (former.and_then(|text| with(text.clone()).ok()), errors),
        };
        reading.problems.extend(errors.into_iter().map(|error| {
            let file = name.clone();
            BrokenFile { file, error }
        }));
        if let Some((library, text)) = accepted {
            reading.library = library;
            self.good.insert(file.to_owned(), text);
        }
    }
}

/// Reads a file of the directory. Links to the outside are rejected: write access to profiles must not give read
/// access to the daemon's files. Kubernetes uses links inside the directory.
fn read_in(directory: &Path, file: &Path) -> Result<String, String> {
    let name = file.display();
    let canonical = |path: &Path| {
        let found = path.canonicalize();
        found.map_err(|error| format!("{name}: cannot be read: {error}"))
    };
    let (directory, target) = (canonical(directory)?, canonical(file)?);
    if !target.starts_with(&directory) {
        return Err(format!(
            "{name}: it links to {}, outside of its directory; put the file itself there",
            target.display()
        ));
    }
    // Reads the checked target, even if the link was changed since.
    text::read_as(&target, file)
}

/// Profile files by name, without hidden ones, which are editors' drafts.
pub(crate) fn list(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let known = path.extension().is_some_and(|extension| {
            ["yaml", "yml", "json"]
                .iter()
                .any(|known| extension == *known)
        });
        if known && !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_within_the_directory_is_followed_and_one_out_of_it_is_not() {
        let home = tempfile::tempdir().unwrap();
        let profiles = home.path().join("profiles");
        let data = profiles.join("..data");
        fs::create_dir_all(&data).unwrap();
        fs::create_dir(home.path().join("profiles-of-others")).unwrap();
        fs::write(data.join("mounted.yaml"), "chaos: {}\n").unwrap();
        symlink("..data/mounted.yaml", profiles.join("mounted.yaml")).unwrap();
        for (name, target) in [
            ("above", "../secret"),
            ("beside", "../profiles-of-others/secret"),
            ("absolute", "/etc/passwd"),
        ] {
            if let Some(relative) = target.strip_prefix("../") {
                fs::write(home.path().join(relative), "description: hunter2\n").unwrap();
            }
            symlink(target, profiles.join(format!("{name}.yaml"))).unwrap();
        }
        // The directory itself may be a link.
        let linked = home.path().join("linked");
        symlink("profiles", &linked).unwrap();
        for path in [profiles, linked] {
            let config = Config {
                profiles: Some(path),
                ..Config::with_home(home.path().to_owned())
            };
            let reading = ProfileFiles::default().read(&config, &Library::default());
            let names: Vec<_> = reading
                .library
                .list()
                .into_iter()
                .map(|one| one.name)
                .collect();
            assert_eq!(names, ["mounted"]);
            assert_eq!(reading.problems.len(), 3);
            for problem in &reading.problems {
                assert!(
                    problem.error.contains("outside of its directory"),
                    "{problem:?}"
                );
                assert!(!problem.error.contains("hunter2"), "{problem:?}");
            }
        }
    }
}
