//! What a daemon is called among those that share a store.

use std::fmt::Write as _;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::claim::Claim;

/// The file in a daemon's home.
const FILE: &str = "daemon-id";

/// What a daemon is called among those that share a store: 16 hex digits, and its own for as long as this
/// is held.
#[derive(Debug)]
pub struct DaemonId {
    id: String,
    _claim: Option<Claim>,
}

impl DaemonId {
    /// That of `home`, made when it is first asked for: the same after a restart. While another daemon has
    /// it, and without a home, another one each time.
    pub fn of(home: Option<&Path>) -> io::Result<Self> {
        let Some(home) = home else {
            return Self::passing();
        };
        std::fs::create_dir_all(home)?;
        let Some(mut claim) = Claim::on(&home.join(FILE))? else {
            return Self::passing();
        };
        let file = claim.file();
        let id = if let Some(known) = known(file)? {
            known
        } else {
            let id = fresh()?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(id.as_bytes())?;
            id
        };
        Ok(Self {
            id,
            _claim: Some(claim),
        })
    }

    /// One that nobody has had before.
    fn passing() -> io::Result<Self> {
        Ok(Self {
            id: fresh()?,
            _claim: None,
        })
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}

/// `None` when there is none, or one that was cut off.
fn known(file: &mut impl io::Read) -> io::Result<Option<String>> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
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

    fn of(home: Option<&Path>) -> DaemonId {
        DaemonId::of(home).expect("an id")
    }

    #[test]
    fn a_home_has_one_id_and_no_home_has_none_that_lasts() {
        let home = tempfile::TempDir::new().expect("a directory");
        let id = || of(Some(home.path())).id;
        let first = id();
        assert_eq!(first, id());
        std::fs::write(home.path().join(FILE), &first[..7]).expect("a write");
        let second = id();
        assert_eq!((second.len(), second == first), (16, false));
        assert_eq!(second, id());
        assert_ne!(of(None).id, of(None).id);
    }

    #[test]
    fn no_two_daemons_have_one_id_at_once() {
        let home = tempfile::TempDir::new().expect("a directory");
        let one = of(Some(home.path()));
        let (other, third) = (of(Some(home.path())), of(Some(home.path())));
        assert_ne!(one.as_str(), other.as_str());
        assert_ne!(other.as_str(), third.as_str());
        let id = one.as_str().to_owned();
        drop(one);
        assert_eq!(of(Some(home.path())).as_str(), id);
    }
}
