//! Reads files that users name. It rejects pipes and devices, which could block or never end.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Longest file, bytes.
const LONGEST: u64 = 64 << 20;

/// The contents of a regular file of at most 64 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Checked before opening: opening a pipe would unblock its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other(
            "it is no regular file; write what it would give to one",
        ));
    }
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = File::options();
    let opened = options.read(true).custom_flags(nonblocking).open(path)?;
    let mut bytes = Vec::new();
    opened.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let why = format!("it is longer than {LONGEST} bytes");
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

/// The contents of such a file, as text.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let home = tempfile::tempdir().unwrap();
        let (pipe, long) = (home.path().join("pipe"), home.path().join("long"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        File::create(&long).unwrap().set_len(LONGEST + 1).unwrap();
        for (path, why) in [
            (pipe.as_path(), "no regular file"),
            (Path::new("/dev/zero"), "no regular file"),
            (home.path(), "no regular file"),
            (long.as_path(), "longer than"),
        ] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(why), "{}: {error}", path.display());
        }
    }
}
