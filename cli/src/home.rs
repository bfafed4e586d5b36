//! `$SQUALL_HOME`: the directory of the CA and its bundle.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The directory: `$SQUALL_HOME`, or `squall` in the platform's directory for a user's data.
pub(crate) fn home() -> Result<PathBuf, Failure> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(home) = variable("SQUALL_HOME") {
        let home =
            std::path::absolute(&home).map_err(|error| Failure::could_not("SQUALL_HOME", error))?;
        return ours(&home).map(|()| home);
    }
    let data = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The XDG specification requires that relative paths are ignored.
        variable("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    let home = data.map(|data| data.join("squall")).ok_or_else(|| {
        Failure::Usage("there is no home directory to keep the CA in; set SQUALL_HOME".to_owned())
    })?;
    ours(&home).map(|()| home)
}

/// Checks that an existing home is safe: owned by this user or root, and not writable for everyone. Group access
/// is allowed, since mounted volumes often have it.
fn ours(home: &Path) -> Result<(), Failure> {
    let metadata = match std::fs::metadata(home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| Failure::could_not(home.display(), error))?,
    };
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let mode = metadata.mode() & 0o7777;
    let danger = if owner != user && owner != 0 {
        format!("belongs to user {owner}, who could replace the CA's key, and this is user {user}")
    } else if mode & 0o002 != 0 {
        format!("has mode {mode:04o}: everybody could replace the CA's key; `chmod o-w` it")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "the home {} {danger}; or set SQUALL_HOME to a directory of your own",
        home.display()
    )))
}
