//! URLs that hold no secret: agents call the same few over and over.

use xxhash_rust::xxh3::xxh3_64;

/// How many are remembered; another one of the same slot takes its place.
const SLOTS: usize = 64;

/// Longest URL remembered, bytes.
const LONGEST: usize = 1024;

/// URLs that redaction has left as they are. Those with a secret are not kept here either.
pub(super) struct CleanUrls([Box<str>; SLOTS]);

impl Default for CleanUrls {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Box::default()))
    }
}

impl CleanUrls {
    /// Redacts `url` by `redact`, unless it is known to stay as it is.
    pub(super) fn redact(&mut self, url: &mut String, redact: impl FnOnce(&mut String)) {
        if url.is_empty() || url.len() > LONGEST {
            return redact(url);
        }
        let at = xxh3_64(url.as_bytes()) % SLOTS as u64;
        let slot = &mut self.0[usize::try_from(at).unwrap_or_default()];
        if **slot == **url {
            return;
        }
        let written: Box<str> = url.as_str().into();
        redact(url);
        if *written == **url {
            *slot = written;
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_journal::redact::Redactor;

    use super::*;

    #[test]
    fn a_url_that_is_known_is_redacted_as_one_that_is_not() {
        let redactor = Redactor::default();
        let mut clean = CleanUrls::default();
        for turn in 0..3 {
            for number in 0..200 {
                for url in [
                    format!("https://h/v1?key=abc{number}&a=1"),
                    format!("https://h/v1/{number}"),
                ] {
                    let (mut once, mut again) = (url.clone(), url);
                    redactor.url(&mut once, 4096);
                    clean.redact(&mut again, |url| redactor.url(url, 4096));
                    assert_eq!(again, once, "turn {turn}");
                }
            }
        }
    }

    #[test]
    fn what_is_clean_is_not_read_again_and_what_is_not_always_is() {
        let mut clean = CleanUrls::default();
        for (url, read) in [("https://h/x", 1), ("https://h/?key=abc", 3)] {
            let mut times = 0;
            for _ in 0..3 {
                let mut url = url.to_owned();
                clean.redact(&mut url, |url| {
                    times += 1;
                    Redactor::default().url(url, 4096);
                });
                assert!(!url.contains("abc"), "{url}");
            }
            assert_eq!(times, read, "{url}");
        }
    }
}
