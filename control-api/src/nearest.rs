//! Suggestions for misspelled names.

use squall_documents::did_you_mean;
use squall_profiles::library::Library;

/// The error for an unknown profile, with the most similar name.
pub(crate) fn no_profile(library: &Library, name: &str) -> String {
    let listed = library.list();
    let near = did_you_mean(name, listed.iter().map(|profile| profile.name.as_str()));
    let shown: String = name.chars().take(64).collect();
    format!("there is no profile `{shown}`{near}")
}
