//! Tool names for upstreams: the config's `tools:` map, and additional names of an activation.

use smallvec::SmallVec;

use crate::facts::CanonicalUrl;
use crate::glob::{Glob, UrlGlobs};
use squall_documents::{DocumentError, DocumentLimits, did_you_mean};

/// Tool names, each with URL globs.
#[derive(Debug, Clone, Default)]
pub struct ToolNames {
    tools: Vec<(String, UrlGlobs)>,
}

impl ToolNames {
    /// Compiles a map from tool name to URL globs. Errors have no position; the caller knows where
    /// the map is.
    pub fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a [String])>,
    ) -> Result<Self, DocumentError> {
        Self::within(tools, &DocumentLimits::default())
    }

    /// [`Self::new`] for a map in a document with these limits.
    pub fn within<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a [String])>,
        limits: &DocumentLimits,
    ) -> Result<Self, DocumentError> {
        let compile = |(name, globs): (&str, &[String])| {
            let urls = UrlGlobs::within(globs.iter().map(String::as_str), limits);
            let urls = urls.map_err(|(_, error)| {
                DocumentError::whole("tools", format!("`{name}`: {error}"))
            })?;
            Ok((name.to_owned(), urls))
        };
        Ok(Self {
            tools: tools.into_iter().map(compile).collect::<Result<_, _>>()?,
        })
    }

    /// The names of the tools behind a URL, in the map's order; empty if there are none.
    pub fn names(&self, url: &CanonicalUrl) -> SmallVec<[&str; 2]> {
        self.tools
            .iter()
            .filter(|(_, urls)| urls.matches(url))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// A hint at a similar name; empty if there is none.
    pub(crate) fn did_you_mean(&self, name: &str) -> String {
        did_you_mean(name, self.tools.iter().map(|(tool, _)| tool.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// These names, followed by those of `more`.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let tools = self.tools.iter().chain(&more.tools).cloned().collect();
        Self { tools }
    }

    /// The URL globs of all tools that a name or glob matches.
    pub(crate) fn urls_of(&self, name: &Glob) -> Vec<UrlGlobs> {
        let named = self.tools.iter().filter(|(tool, _)| name.matches(tool));
        named.map(|(_, urls)| urls.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_names_whose_globs_match_it() {
        let search = [
            "http://search:5001/*".to_owned(),
            "https://search.example/*".to_owned(),
        ];
        let all = ["http://search:*".to_owned()];
        let tools = ToolNames::new([("web_search", &search[..]), ("any", &all[..])]).unwrap();
        for (authority, expected) in [
            ("search:5001", vec!["web_search", "any"]),
            ("search:1", vec!["any"]),
            ("x", vec![]),
        ] {
            let url = CanonicalUrl::new("http", authority, "/q");
            assert_eq!(tools.names(&url).to_vec(), expected, "{authority}");
        }
        let url = CanonicalUrl::new("http", "search:1", "/q");
        let more = ToolNames::new([("also", &all[..])]).unwrap();
        assert_eq!(tools.and(&more).names(&url).to_vec(), ["any", "also"]);
        assert!(ToolNames::new([("bad", &["{".to_owned()][..])]).is_err());
    }
}
