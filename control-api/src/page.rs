//! Lists in pages: `{"items": […], "next_cursor": "…" | null}`.

use axum::Json;
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::id::ExchangeId;

use crate::query::Params;

/// Entries of a page by default.
const USUAL: usize = 100;
/// Most entries of a page.
const MOST: usize = 1000;

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct ListPage<T> {
    /// Its entries.
    pub(crate) items: Vec<T>,
    /// `cursor` of the next page; `null` on the last one.
    pub(crate) next_cursor: Option<String>,
}

/// The parameter `limit`: 1 to 1000. Default 100.
pub(crate) fn limit(params: &mut Params) -> usize {
    let read = |text: &str| text.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    params
        .read("limit", "a number from 1 to 1000", read)
        .unwrap_or(USUAL)
}

/// The parameter `cursor` of any list, as `read` parses it: 400 for a text that no page returned.
pub(crate) fn cursor<T>(params: &mut Params, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    params.read("cursor", "the `next_cursor` of the page before", read)
}

/// The cursor of a list by id: the last id of the previous page. Ids of exchanges, recordings and runs have the
/// same form.
pub(crate) fn before_id(params: &mut Params) -> Option<ExchangeId> {
    cursor(params, |text| text.parse().ok())
}

/// The page of a list by id, newest first. `limit` plus one entries were looked up.
pub(crate) fn newest<T>(
    mut found: Vec<T>,
    limit: usize,
    id: impl Fn(&T) -> String,
) -> Json<ListPage<T>> {
    let more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| more).map(id);
    Json(ListPage {
        items: found,
        next_cursor,
    })
}

/// Prefix of cursors of lists by name, before the last name of the previous page. It distinguishes them from any
/// other text.
const AFTER: &str = "after.";

/// The cursor of a list by name: the last name of the previous page. It fits every name, also a token's with its
/// workspace.
pub(crate) fn after_name(params: &mut Params) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    cursor(params, |text| {
        let name = text.strip_prefix(AFTER)?;
        let fits = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed);
        fits.then(|| name.to_owned())
    })
}

/// Longest name in a cursor; no list has a longer one.
const LONGEST_NAME: usize = 200;

/// The page of a list sorted by name that follows the name `after`.
pub(crate) fn by_name<T>(
    sorted: Vec<T>,
    name: impl Fn(&T) -> &str,
    after: Option<&str>,
    limit: usize,
) -> Json<ListPage<T>> {
    let mut rest = sorted
        .into_iter()
        .skip_while(|item| after.is_some_and(|after| name(item) <= after));
    let items: Vec<T> = rest.by_ref().take(limit).collect();
    let more = rest.next().is_some();
    let next_cursor = items
        .last()
        .filter(|_| more)
        .map(|last| format!("{AFTER}{}", name(last)));
    Json(ListPage { items, next_cursor })
}
