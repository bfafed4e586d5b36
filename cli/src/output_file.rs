//! Output files of commands: checked first, so that no work is lost at the end.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::failure::Failure;

/// Rejects a file that could not be written. It leaves existing contents unchanged, and creates nothing.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    let append = |file: &Path| File::options().append(true).open(file).map(drop);
    let create = |file: &Path| {
        OpenOptions::new().write(true).create_new(true).open(file)?;
        std::fs::remove_file(file)
    };
    let opened = match std::fs::metadata(file) {
        Ok(found) if found.file_type().is_fifo() => Err(io::Error::other("it is a pipe")),
        Ok(found) if found.file_type().is_char_device() => Ok(()),
        Ok(_) => append(file),
        // A link whose target does not exist yet.
        Err(_) if file.is_symlink() => Ok(()),
        Err(_) => create(file),
    };
    opened.map_err(|error| Failure::Usage(not_written(file, &error)))
}

/// Writes a file.
pub(crate) fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let written = std::fs::write(file, content);
    written.map_err(|error| Failure::CouldNotRun(not_written(file, &error)))
}

/// Writes a file that only its owner may read: it contains recorded traffic.
pub(crate) fn write_private(file: &Path, content: &str) -> Result<(), Failure> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let opened = options.open(file);
    let written = opened.and_then(|mut out| out.write_all(content.as_bytes()));
    written.map_err(|error| Failure::CouldNotRun(not_written(file, &error)))
}

/// Creates a directory for files, and its parents.
pub(crate) fn create_directory(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::could_not(directory.display(), error))
}

fn not_written(file: &Path, error: &dyn Display) -> String {
    format!(
        "{} cannot be written: {error}; name another file",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_known_before() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(made.unwrap().success());
        std::fs::write(at("there"), "kept").unwrap();
        for (name, why) in [
            ("new", None),
            ("there", None),
            ("/dev/null", None),
            ("pipe", Some("it is a pipe")),
            (".", Some("directory")),
            ("nowhere/new", Some("No such file")),
        ] {
            match (check(&at(name)), why) {
                (Ok(()), None) => {}
                (Err(Failure::Usage(told)), Some(why)) => assert!(told.contains(why), "{told}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
        assert_eq!(std::fs::read_to_string(at("there")).unwrap(), "kept");
        assert!(!at("new").exists());
    }
}
