//! What somebody most likely meant.

/// The name most like the one given, if it is like it at all.
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
