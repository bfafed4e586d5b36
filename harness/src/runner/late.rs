//! Calls that came when the invocation they are of was over.

use super::Tried;
use crate::reach::Late;

/// A sentence about them; `None`: there was none.
pub(super) fn calls_late<'r>(
    late: &Late,
    mut tried: impl Iterator<Item = &'r Tried<'r>>,
) -> Option<String> {
    if late.count == 0 {
        return None;
    }
    let first = late.first.as_ref().map(|first| {
        let of = tried.find(|(_, asked)| asked.place.scope == first.scope);
        let of = of.map(|(job, _)| {
            let prompt = job.prompt.beginning();
            format!(" of `{prompt}`")
        });
        let (method, url, exchange) = (&first.method, &first.url, &first.exchange);
        format!(
            ", {method} {url}{} the first (exchange {exchange})",
            of.unwrap_or_default()
        )
    });
    let calls = match late.count {
        1 => "1 call".to_owned(),
        more => format!("{more} calls"),
    };
    Some(format!(
        "{calls} came when the invocation was over{}: what comes so late meets no chaos and is not judged",
        first.unwrap_or_default()
    ))
}
