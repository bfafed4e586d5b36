//! Lists in pages: `{"items": […], "next_cursor": "…" | null}`.

use axum::Json;
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::id::ExchangeId;

use crate::query::Params;

/// Entries of a page when the request does not say.
const USUAL: usize = 100;
/// Most entries of a page.
const MOST: usize = 1000;

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct Page<T> {
    /// Its entries.
    pub(crate) items: Vec<T>,
    /// `cursor` of the next page; `null` on the last one.
    pub(crate) next_cursor: Option<String>,
}

/// The parameter `limit`: 1 to 1000, 100 when it is not given.
pub(crate) fn limit(params: &mut Params) -> usize {
    let read = |text: &str| text.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    params
        .read("limit", "a number from 1 to 1000", read)
        .unwrap_or(USUAL)
}

/// The parameter `cursor` of any list, as `read` understands it: 400 for what no page ever gave out.
pub(crate) fn cursor<T>(params: &mut Params, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    params.read("cursor", "the `next_cursor` of the page before", read)
}

/// The cursor of a list by id: the last id of the page before. Exchanges, recordings and runs have ids of
/// one form.
pub(crate) fn before_id(params: &mut Params) -> Option<ExchangeId> {
    cursor(params, |text| text.parse().ok())
}

/// The page of a list by id, newest first, of which one more than `limit` was looked for.
pub(crate) fn newest<T>(
    mut found: Vec<T>,
    limit: usize,
    id: impl Fn(&T) -> String,
) -> Json<Page<T>> {
    let more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| more).map(id);
    Json(Page {
        items: found,
        next_cursor,
    })
}

/// What cursors of lists by name begin with, before the last name of the page before: it tells them from
/// any other text.
const AFTER: &str = "after.";

/// The cursor of a list by name: the name that the page comes after. Every name fits, those of tokens with
/// their workspace.
pub(crate) fn after_name(params: &mut Params) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    cursor(params, |text| {
        let name = text.strip_prefix(AFTER)?;
        let fits = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed);
        fits.then(|| name.to_owned())
    })
}

/// Longest name in a cursor: more than any list has.
const LONGEST_NAME: usize = 200;

/// The page of a list sorted by name that comes after the name `after`.
pub(crate) fn by_name<T>(
    sorted: Vec<T>,
    name: impl Fn(&T) -> &str,
    after: Option<&str>,
    limit: usize,
) -> Json<Page<T>> {
    let mut rest = sorted
        .into_iter()
        .skip_while(|item| after.is_some_and(|after| name(item) <= after));
    let items: Vec<T> = rest.by_ref().take(limit).collect();
    let more = rest.next().is_some();
    let next_cursor = items
        .last()
        .filter(|_| more)
        .map(|last| format!("{AFTER}{}", name(last)));
    Json(Page { items, next_cursor })
}
