//! Sessions: a cookie stands for a token, which stays in memory.
//!
//! The CSRF token is a keyed hash of the cookie, so that a visitor of an API without tokens needs no memory here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::COOKIE;
use ring::hmac;
use squall_control_api::access::{NoRandomness, random_hex};
use squall_harness::digest::hex;

/// The name of the cookie.
const NAME: &str = "squall_session";

/// Lifetime of a login.
const LIFETIME: Duration = Duration::from_hours(12);

/// Most logins; above it the oldest ends.
const MOST: usize = 1_000;

/// Most logins of a token; above it its oldest ends, so that no token can end the logins of others.
const MOST_OF_A_TOKEN: usize = 50;

/// All logins.
#[derive(Debug)]
pub(crate) struct Sessions {
    key: hmac::Key,
    logins: Mutex<HashMap<String, Login>>,
}

struct Login {
    token: String,
    ends: Instant,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login(…)")
    }
}

impl Sessions {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, random_hex::<32>()?.as_bytes()),
            logins: Mutex::default(),
        })
    }

    /// A new id.
    pub(crate) fn id() -> Result<String, NoRandomness> {
        random_hex::<32>()
    }

    /// The id in a request's cookie.
    pub(crate) fn of(headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|cookies| cookies.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let (_, id) = pairs.find(|(name, _)| *name == NAME)?;
        let is_valid = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_valid.then(|| id.to_owned())
    }

    /// The header that sets the cookie.
    pub(crate) fn cookie(id: &str, is_secure: bool) -> String {
        let secure = if is_secure { "; Secure" } else { "" };
        format!(
            "{NAME}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}",
            LIFETIME.as_secs()
        )
    }

    /// The CSRF token of a session.
    pub(crate) fn csrf(&self, id: &str) -> String {
        hex(hmac::sign(&self.key, id.as_bytes()).as_ref())
    }

    /// Whether this is the session's CSRF token. The comparison is of digests, so that its time says nothing.
    pub(crate) fn is_csrf(&self, id: &str, given: &str) -> bool {
        let given = hmac::sign(&self.key, given.as_bytes());
        hmac::verify(&self.key, self.csrf(id).as_bytes(), given.as_ref()).is_ok()
    }

    /// Begins a session with `token`, under an id that nobody knew before.
    pub(crate) fn log_in(&self, token: String, now: Instant) -> Result<String, NoRandomness> {
        let id = Self::id()?;
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|_, login| login.ends > now);
        let own = |login: &Login| login.token == token;
        let has_most = logins.values().filter(|login| own(login)).count() >= MOST_OF_A_TOKEN;
        if has_most || logins.len() >= MOST {
            let leaves = logins.iter().filter(|(_, login)| !has_most || own(login));
            let oldest = leaves.min_by_key(|(_, login)| login.ends);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                logins.remove(&oldest);
            }
        }
        let ends = now + LIFETIME;
        logins.insert(id.clone(), Login { token, ends });
        Ok(id)
    }

    /// Ends a session.
    pub(crate) fn log_out(&self, id: &str) {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.remove(id);
    }

    /// The token of a session.
    pub(crate) fn token(&self, id: &str, now: Instant) -> Option<String> {
        let logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let login = logins.get(id).filter(|login| login.ends > now)?;
        Some(login.token.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_ends_after_its_lifetime_when_logged_out_or_when_there_are_too_many() {
        let (sessions, start) = (Sessions::new().unwrap(), Instant::now());
        let first = sessions.log_in("a".to_owned(), start).unwrap();
        assert_eq!(sessions.token(&first, start).as_deref(), Some("a"));
        assert_eq!(sessions.token(&first, start + LIFETIME), None);
        let later = start + Duration::from_secs(1);
        let second = sessions.log_in("b".to_owned(), start).unwrap();
        for _ in 0..MOST {
            sessions.log_in("b".to_owned(), later).unwrap();
        }
        assert_eq!(sessions.token(&second, later), None);
        assert!(sessions.token(&first, later).is_some(), "of another token");
        for number in 0..MOST {
            sessions.log_in(number.to_string(), later).unwrap();
        }
        assert_eq!(sessions.token(&first, later), None);
        let last = sessions.log_in("c".to_owned(), later).unwrap();
        sessions.log_out(&last);
        assert_eq!(sessions.token(&last, later), None);
    }

    #[test]
    fn a_csrf_token_holds_for_one_session_of_one_daemon() {
        let (sessions, other) = (Sessions::new().unwrap(), Sessions::new().unwrap());
        let csrf = sessions.csrf("one");
        assert!(sessions.is_csrf("one", &csrf));
        assert!(!sessions.is_csrf("two", &csrf) && !other.is_csrf("one", &csrf));
        assert!(!sessions.is_csrf("one", ""));
    }
}
