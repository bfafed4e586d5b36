//! Names for upstreams: the config's `tools:` and `agents:` maps, and additional names of an activation.

use smallvec::SmallVec;

use crate::facts::CanonicalUrl;
use crate::glob::{Glob, UrlGlobs};
use squall_documents::{DocumentError, DocumentLimits, did_you_mean};

/// Names of tools and agents, each with URL globs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames {
    tools: Vec<(String, UrlGlobs)>,
    agents: Vec<(String, UrlGlobs)>,
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
            agents: Vec::new(),
        })
    }

    /// These tools, and the tools of `agents` as agents.
    #[must_use]
    pub fn with_agents(self, agents: Self) -> Self {
        Self {
            agents: agents.tools,
            ..self
        }
    }

    /// Whether an agent is behind a URL.
    pub fn is_agent(&self, url: &CanonicalUrl) -> bool {
        self.agents.iter().any(|(_, urls)| urls.matches(url))
    }

    /// Whether there are agents.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Whether an agent has this name.
    pub fn has_agent(&self, name: &str) -> bool {
        self.agents.iter().any(|(agent, _)| agent == name)
    }

    /// All names: of agents, then of tools.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|(name, _)| name.as_str())
    }

    fn entries(&self) -> impl Iterator<Item = &(String, UrlGlobs)> {
        self.agents.iter().chain(&self.tools)
    }

    /// The names of the agents and tools behind a URL, in the maps' order; empty if there are none.
    pub fn names(&self, url: &CanonicalUrl) -> SmallVec<[&str; 2]> {
        self.entries()
            .filter(|(_, urls)| urls.matches(url))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// A hint at a similar name; empty if there is none.
    pub(crate) fn did_you_mean(&self, name: &str) -> String {
        did_you_mean(name, self.all())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.agents.is_empty()
    }

    /// These names, followed by those of `more`.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let tools = self.tools.iter().chain(&more.tools).cloned().collect();
        let agents = self.agents.iter().chain(&more.agents).cloned().collect();
        Self { tools, agents }
    }

    /// The URL globs of all agents and tools that a name or glob matches.
    pub(crate) fn urls_of(&self, name: &Glob) -> Vec<UrlGlobs> {
        let named = self.entries().filter(|(tool, _)| name.matches(tool));
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
