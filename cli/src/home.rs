//! `$SQUALL_HOME`: where the CA and its bundle live.

use std::path::PathBuf;

use crate::failure::Failure;

/// The directory: `$SQUALL_HOME`, or `squall` in the platform's directory for a user's data.
pub(crate) fn home() -> Result<PathBuf, Failure> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(home) = variable("SQUALL_HOME") {
        return std::path::absolute(&home)
            .map_err(|error| Failure::could_not("SQUALL_HOME", error));
    }
    let data = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        // The XDG specification has relative paths ignored.
        variable("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    data.map(|data| data.join("squall")).ok_or_else(|| {
        Failure::Usage("there is no home directory to keep the CA in; set SQUALL_HOME".to_owned())
    })
}
