//! Files that are written whole or not at all, some of them for their owner's eyes only.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ring::rand::{SecureRandom, SystemRandom};

/// Mode of a file that only its owner may read.
pub(super) const PRIVATE: u32 = 0o600;

/// Mode of a file that everybody may read.
pub(super) const PUBLIC: u32 = 0o644;

/// Makes `directory` (and what is above it) unless it exists; only its owner may enter it.
pub(super) fn create_private_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Puts `content` in place of `path` in one step: readers see the old file or the new one.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{:016x}", u64::from_be_bytes(random())));
    let temporary = path.with_file_name(name);
    let written = write_new(&temporary, content, mode).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the error that counts is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a file that is not there yet, and waits until the disk has it.
pub(super) fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Holds `path` as a lock against every other process and thread until it is dropped.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    // A pipe is opened only once somebody reads it.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is no regular file; remove it"));
    }
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// The permission bits of `path` that are also in `forbidden`.
pub(super) fn excess_mode(path: &Path, forbidden: u32) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & forbidden)
}

/// Random bytes, fit for keys.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut random = [0; N];
    SystemRandom::new()
        .fill(&mut random)
        .expect("the system gives random bytes");
    random
}
