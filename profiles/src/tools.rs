//! Names for upstreams: the config's `tools:` map.

use smallvec::SmallVec;

use crate::error::ProfileError;
use crate::facts::CanonicalUrl;

/// Tool names and the URL globs they stand for.
#[derive(Debug, Clone, Default)]
pub struct ToolNames {}

impl ToolNames {
    /// Compiles a map from tool name to URL globs. Errors have no position: the caller knows where
    /// the map was written.
    pub fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a [String])>,
    ) -> Result<Self, ProfileError> {
        let _ = tools.into_iter().count();
        Ok(Self::default())
    }

    /// The names of the tool behind a URL, in the map's order; empty when there is none.
    pub fn names(&self, url: &CanonicalUrl) -> SmallVec<[&str; 2]> {
        let _ = url;
        SmallVec::new()
    }
}
