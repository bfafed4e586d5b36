//! What a daemon is called among those that share a store.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use ring::rand::{SecureRandom as _, SystemRandom};

/// The file in a daemon's home.
const FILE: &str = "daemon-id";

/// What the daemon that lives in `home` is called: 16 hex digits, made when they are first asked for.
/// Without a home another one each time.
pub fn daemon_id(home: Option<&Path>) -> io::Result<String> {
    let Some(home) = home else {
        return fresh();
    };
    let file = home.join(FILE);
    if let Some(known) = known(&file)? {
        return Ok(known);
    }
    std::fs::create_dir_all(home)?;
    let id = fresh()?;
    let mut made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&file)?;
    made.write_all(id.as_bytes())?;
    Ok(id)
}

/// `None` when there is none, or one that was cut off.
fn known(file: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(64).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let id = text.trim();
    let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(is_id.then(|| id.to_owned()))
}

fn fresh() -> io::Result<String> {
    let mut bytes = [0; 8];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map_err(|_| io::Error::other("the system gives no random bits"))?;
    let mut id = String::with_capacity(16);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_one_id_and_no_home_has_none_that_lasts() {
        let home = tempfile::TempDir::new().expect("a directory");
        let id = || daemon_id(Some(home.path())).expect("an id");
        let first = id();
        assert_eq!(first, id());
        std::fs::write(home.path().join(FILE), &first[..7]).expect("a write");
        let second = id();
        assert_eq!((second.len(), second == first), (16, false));
        assert_ne!(
            daemon_id(None).expect("an id"),
            daemon_id(None).expect("an id")
        );
    }
}
