//! Where a request goes.

/// Where a request goes, as far as dialects care: path and query of the upstream's URL, and the host where
/// a path that many share is not enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Target<'a> {
    path: &'a str,
    query: &'a str,
    host: &'a str,
}

impl<'a> Target<'a> {
    /// From a path with or without query.
    pub fn new(path_and_query: &'a str) -> Self {
        let whole = path_and_query.split('#').next().unwrap_or_default();
        let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
        Self {
            path: path.strip_suffix('/').unwrap_or(path),
            query,
            host: "",
        }
    }

    /// The same at this host. No dialect is recognised by it: it selects the provider's errors where
    /// several providers share a path.
    #[must_use]
    pub fn at(self, host: &'a str) -> Self {
        Self { host, ..self }
    }

    /// The host, in lower case; empty if not known.
    pub fn host(self) -> &'a str {
        self.host
    }

    /// Everything behind the `?`, not decoded; empty where there is nothing.
    pub fn query(self) -> &'a str {
        self.query
    }

    /// The path, without a slash at its end; not decoded.
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
