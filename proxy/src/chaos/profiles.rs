//! The source of compiled rules: the profile library and the tool names.

use std::sync::Arc;

use squall_profiles::library::Library;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::tools::ToolNames;

use super::NO_CHAOS;
use super::request::{PutError, RuleSource};

/// The source of compiled rules; locked while they are compiled.
#[derive(Debug, Clone)]
pub(super) struct Profiles {
    pub(super) library: Library,
    pub(super) tools: ToolNames,
}

impl Profiles {
    /// Compiles the requested rules, with additional tool names.
    pub(super) fn compile(
        &self,
        source: &RuleSource,
        own: &ToolNames,
    ) -> Result<Arc<RuleSet>, PutError> {
        let tools = self.tools.and(own);
        let named = |library: &Library, name: &String| match name.as_str() {
            NO_CHAOS => Ok(RuleSet::default()),
            name if library.get(name).is_none() => Err(PutError::UnknownProfile(name.to_owned())),
            name => Ok(library.rule_set(name, &tools)?),
        };
        let rules = match source {
            RuleSource::Profile(name) => named(&self.library, name),
            RuleSource::OfWorkspace { workspace, profile } => {
                named(&self.library.of_workspace(workspace), profile)
            }
            RuleSource::Inline(profile) => Ok(self.library.rule_set_of(profile, &tools)?),
            RuleSource::Limited { rules, firings } => {
                Ok(self.compile(rules, own)?.limited(firings, &tools)?)
            }
        };
        Ok(Arc::new(rules?.with_own_tools(own.clone())))
    }
}
