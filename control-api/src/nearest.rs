//! Suggestions for misspelled names.

use squall_profiles::library::Library;

/// The most similar name, if any is similar enough.
pub(crate) fn nearest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1.max(name.len() / 3)).then_some(name)
}

/// The error for an unknown profile, with the most similar name.
pub(crate) fn no_profile(library: &Library, name: &str) -> String {
    let listed = library.list();
    let near = nearest(name, listed.iter().map(|profile| profile.name.as_str()));
    let near = near.map(|near| format!(", did you mean `{near}`?"));
    let shown: String = name.chars().take(64).collect();
    format!("there is no profile `{shown}`{}", near.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_one_that_is_like_it() {
        for (given, expected) in [("api_outag", Some("api_outage")), ("zzz", None)] {
            assert_eq!(nearest(given, ["brownout", "api_outage"]), expected);
        }
    }
}
