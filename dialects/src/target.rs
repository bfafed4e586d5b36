//! The target of a request.

/// The parts of a request's target that dialects need: path and query of the upstream's URL, and the host if
/// several providers share a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Target<'a> {
    path: &'a str,
    query: &'a str,
    host: &'a str,
}

impl<'a> Target<'a> {
    /// Parses a path with an optional query.
    pub fn new(path_and_query: &'a str) -> Self {
        let whole = path_and_query.split('#').next().unwrap_or_default();
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        Self {
            path: path.strip_suffix('/').unwrap_or(path),
            query,
            host: "",
        }
    }

    /// Sets the host. It is not used to recognise a dialect, only to select the provider's errors if several
    /// providers share a path.
    #[must_use]
    pub fn at(self, host: &'a str) -> Self {
        Self { host, ..self }
    }

    /// The host, in lower case; empty if not known.
    pub fn host(self) -> &'a str {
        self.host
    }

    /// The query after the `?`, not decoded; empty if there is none.
    pub fn query(self) -> &'a str {
        self.query
    }

    /// The path without a trailing slash, not decoded.
    pub fn path(self) -> &'a str {
        self.path
    }

    /// The first value of a query parameter, not decoded.
    pub fn parameter(self, name: &str) -> Option<&'a str> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_path_and_parameters() {
        let target = Target::new("/v1/x:stream/?key=1&alt=sse&alt=json#alt=no");
        assert_eq!(target.path(), "/v1/x:stream");
        assert_eq!(target.parameter("alt"), Some("sse"));
        assert_eq!(target.parameter("lt"), None);
        assert_eq!(Target::new("/x").parameter("x"), None);
    }
}
