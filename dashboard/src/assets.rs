//! Scripts and style sheets, contained in this binary.
//!
//! `scripts/dashboard-assets` brings the libraries; `squall.*`, `figures.js` and `trend.js` are the dashboard's own. A name holds a
//! digest of the contents, so a browser keeps a file for ever and never has an old one.

use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, StatusCode};
use ring::digest::{SHA256, digest};
use squall_harness::digest::hex;
use squall_harness::report::html;

/// One file.
#[derive(Debug)]
pub(crate) struct Asset {
    name: &'static str,
    bytes: &'static [u8],
    /// `/assets/htmx.0123456789abcdef.js`.
    pub(crate) path: String,
    etag: String,
    compressed: OnceLock<Bytes>,
}

macro_rules! assets {
    ($($name:literal)*) => {
        [$(($name, include_bytes!(concat!("../assets/", $name)).as_slice())),*]
    };
}

static ALL: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = assets!(
        "htmx.js" "htmx-sse.js" "idiomorph.js" "uplot.js" "uplot.css" "codemirror.js" "squall-editor.js"
        "squall.js" "squall.css" "figures.js"
    );
    // Rules of the report style sheet apply to parts of a report only.
    let [colours, rules] = html::STYLES;
    let report = format!("{colours}.report {{\n{rules}}}\n");
    let report = ("report.css", &*report.into_bytes().leak());
    let own = assets!("trend.js").into_iter().chain([report]);
    let files = files.into_iter().chain(own).map(|(name, bytes)| {
        let hash = hex(&digest(&SHA256, bytes).as_ref()[..8]);
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        Asset {
            name,
            bytes,
            path: format!("/assets/{stem}.{hash}.{ending}"),
            etag: format!("\"{hash}\""),
            compressed: OnceLock::new(),
        }
    });
    files.collect()
});

/// Every file.
pub(crate) fn all() -> &'static [Asset] {
    &ALL
}

/// The path of the file with this name.
pub(crate) fn path(name: &str) -> &'static str {
    let found = ALL.iter().find(|asset| asset.name == name);
    found.map_or("/assets/missing", |asset| &asset.path)
}

/// Whether the file of this name is a style sheet.
pub(crate) fn is_style(name: &str) -> bool {
    name.rsplit('.').next() == Some("css")
}

impl Asset {
    fn kind(&self) -> &'static str {
        if is_style(self.name) {
            "text/css; charset=utf-8"
        } else {
            "text/javascript; charset=utf-8"
        }
    }

    fn compressed(&self) -> Bytes {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            let written = encoder
                .write_all(self.bytes)
                .and_then(|()| encoder.finish());
            // Writing to memory does not fail.
            written.unwrap_or_default().into()
        };
        self.compressed.get_or_init(compress).clone()
    }
}

/// A file, compressed for a client that accepts it.
pub(crate) fn serve(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let given = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let kept = [
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (ETAG, &*asset.etag),
        (VARY, "accept-encoding"),
    ];
    if given(IF_NONE_MATCH).is_some_and(|tags| tags.contains(&*asset.etag)) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    let kind = [(CONTENT_TYPE, asset.kind())];
    if given(ACCEPT_ENCODING).is_some_and(|accepted| accepted.contains("gzip")) {
        let gzip = [(CONTENT_ENCODING, "gzip")];
        return (kept, kind, gzip, asset.compressed()).into_response();
    }
    (kept, kind, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_libraries_are_those_of_the_list() {
        let list: Value = serde_json::from_str(include_str!("../assets/assets.json")).unwrap();
        let list = list.as_array().unwrap();
        for asset in all().iter().filter(|asset| {
            !["squall", "figures", "report", "trend"]
                .iter()
                .any(|own| asset.name.starts_with(own))
        }) {
            let entry = list.iter().find(|entry| entry["file"] == asset.name);
            let entry = entry.unwrap_or_else(|| panic!("{} is not in assets.json", asset.name));
            let sum = hex(digest(&SHA256, asset.bytes).as_ref());
            assert_eq!(
                entry["sha256"], sum,
                "{}: run scripts/dashboard-assets",
                asset.name
            );
        }
        for entry in list {
            assert!(
                all().iter().any(|asset| entry["file"] == asset.name),
                "{entry} is not served"
            );
        }
    }
}
