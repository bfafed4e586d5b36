//! What there is not: model faults that have no form in whole answers or in streams.
//!
//! The page `docs/model-faults.md` is written by carrying every fault out; its test holds this table
//! to what came of it.

/// A model fault that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gap {
    /// The fault, as rules name it.
    pub(crate) mode: &'static str,
    /// In streams; false: in whole answers.
    pub(crate) stream: bool,
    /// In which dialect; `None`: in all.
    pub(crate) dialect: Option<&'static str>,
    /// The journal's reason for bypassing the rule.
    pub(crate) why: &'static str,
}

pub(crate) const NO_STREAM: &str = "the answer is no stream";

/// Why arguments cannot be malformed where they are no string.
pub(crate) const NO_TEXT: &str =
    "this provider gives arguments as JSON, not as text that may be none";

/// Why arguments cannot be malformed where the provider checks them.
pub(crate) const REJECTED: &str =
    "this provider checks the arguments that a model writes, and answers with an error";

/// Every one, in the order of the page.
pub(crate) const GAPS: &[Gap] = &[
    no_bad_call("anthropic", false),
    no_bad_call("ollama", false),
    no_bad_call("ollama", true),
    of_streams("stream_error"),
    of_streams("duplicate_chunk"),
    of_streams("missing_terminator"),
    of_streams("json_for_stream"),
];

const fn no_bad_call(dialect: &'static str, stream: bool) -> Gap {
    Gap {
        mode: "malformed_tool_call",
        stream,
        dialect: Some(dialect),
        why: NO_TEXT,
    }
}

const fn of_streams(mode: &'static str) -> Gap {
    Gap {
        mode,
        stream: false,
        dialect: None,
        why: NO_STREAM,
    }
}

/// Why a rule about such calls cannot act; `dialect` is `None` for a rule about all of them.
pub(crate) fn gap(mode: &str, stream: bool, dialect: Option<&str>) -> Option<&'static Gap> {
    let mut gaps = GAPS.iter();
    gaps.find(|gap| {
        let everywhere = gap.dialect.is_none();
        gap.mode == mode && gap.stream == stream && (everywhere || gap.dialect == dialect)
    })
}
