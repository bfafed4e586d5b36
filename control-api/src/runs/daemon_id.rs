//! The id of a daemon among those that share a store.

use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use crate::claim::Claim;
use crate::credential::random_hex;

/// The file in a daemon's home: its id, and on the next line its API's address.
const FILE: &str = "daemon-id";

/// The id of a daemon among those that share a store: 16 hex digits, unique while this is held.
#[derive(Debug)]
pub struct DaemonId {
    id: String,
    claim: Option<Claim>,
}

impl DaemonId {
    /// The id of `home`, created on first use and the same after a restart. A random one without a home, or while
    /// another daemon holds the home.
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
            claim: Some(claim),
        })
    }

    /// A random id.
    fn passing() -> io::Result<Self> {
        Ok(Self {
            id: fresh()?,
            claim: None,
        })
    }

    /// Writes the address of this daemon's API to the home.
    pub fn write_address(&mut self, api: SocketAddr) -> io::Result<()> {
        let Some(claim) = &mut self.claim else {
            return Ok(());
        };
        let file = claim.file();
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}\n{api}", self.id)
    }

    /// The address of the API of the last daemon with this home.
    pub fn last_address(home: &Path) -> Option<SocketAddr> {
        let text = squall_proxy::user_file::read_text(&home.join(FILE)).ok()?;
        text.lines().nth(1)?.parse().ok()
    }

    /// Whether a running daemon holds this home.
    pub fn is_taken(home: &Path) -> io::Result<bool> {
        Claim::on(&home.join(FILE)).map(|claim| claim.is_none())
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}

/// `None` if the id is missing or truncated.
fn known(file: &mut impl io::Read) -> io::Result<Option<String>> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    let id = text.lines().next().unwrap_or_default();
    let is_id = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(is_id.then(|| id.to_owned()))
}

fn fresh() -> io::Result<String> {
    random_hex::<8>().map_err(io::Error::other)
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

    #[test]
    fn a_home_says_where_its_daemon_answers_while_it_is_there() {
        let home = tempfile::TempDir::new().expect("a directory");
        let look = || {
            let taken = DaemonId::is_taken(home.path()).expect("a look");
            (DaemonId::last_address(home.path()), taken)
        };
        assert_eq!(look(), (None, false));
        let mut one = of(Some(home.path()));
        let api = "127.0.0.1:7071".parse().expect("an address");
        let mut other = of(Some(home.path()));
        one.write_address(api).expect("a write");
        other
            .write_address("127.0.0.1:1".parse().expect("an address"))
            .expect("nothing to write");
        assert_eq!(look(), (Some(api), true));
        let id = one.as_str().to_owned();
        drop(one);
        assert_eq!(look(), (Some(api), false));
        assert_eq!(of(Some(home.path())).as_str(), id);
    }
}
