//! Lock files that show that a process is running.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A file that this process has locked, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Claim(File);

impl Claim {
    /// Locks `path`, and creates it for its owner only if it is missing; `None` while another process holds the
    /// lock. On file systems without locks (some network file systems) every process gets it.
    pub(crate) fn on(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A symbolic link could make the daemon write to a file of an attacker's choice.
        let no_links = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
        options
            .mode(0o600)
            .custom_flags(no_links.bits().cast_signed());
        check_regular(path)?;
        let file = options.open(path).map_err(|error| {
            if path.is_symlink() {
                let path = path.display();
                io::Error::other(format!(
                    "{path} is a symbolic link, and is not followed; remove it"
                ))
            } else {
                error
            }
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!(
                    "{} cannot be locked: nothing keeps a second daemon from using it",
                    path.display()
                );
                Ok(Some(Self(file)))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The locked file.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

/// Rejects what exists and is not a regular file: opening a pipe would block until another process writes to it.
pub(crate) fn check_regular(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other(format!(
            "{} is not a regular file; remove it, or use another path",
            path.display()
        ))),
        _ => Ok(()),
    }
}
