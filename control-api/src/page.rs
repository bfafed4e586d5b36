//! Lists in pages: `{"items": […], "next_cursor": "…" | null}`.

use std::borrow::Cow;

use axum::Json;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

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

/// What the parameter `limit` may be.
pub(crate) struct Limit;

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL })
    }
}

/// The parameter `limit`: 1 to 1000, 100 when it is not given.
pub(crate) fn limit(params: &mut Params) -> usize {
    let read = |text: &str| text.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    params
        .read("limit", "a number from 1 to 1000", read)
        .unwrap_or(USUAL)
}

/// The page of a list sorted by name that comes after `cursor`, the last name of the page before.
pub(crate) fn by_name<T>(
    sorted: Vec<T>,
    name: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    limit: usize,
) -> Json<Page<T>> {
    let mut rest = sorted
        .into_iter()
        .skip_while(|item| cursor.is_some_and(|cursor| name(item) <= cursor));
    let items: Vec<T> = rest.by_ref().take(limit).collect();
    let more = rest.next().is_some();
    let next_cursor = items
        .last()
        .filter(|_| more)
        .map(|last| name(last).to_owned());
    Json(Page { items, next_cursor })
}
