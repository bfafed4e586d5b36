//! Changes requests of model calls before they go upstream.
//!
//! The body was read ahead to decide the rules. [`squall_profiles::faults::model_input`] changes
//! it, and the head's length is adapted. If it cannot be changed, it passes unchanged and the
//! reason is reported.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use squall_dialects::signature;
use squall_profiles::changes::ResultChange;
use squall_profiles::decide::Decision;
use squall_profiles::faults::model_input::{self, Called, ChangedResults, Terms};
use squall_profiles::plan::RequestEdit;
use squall_profiles::verdict::RuleVerdict;

use super::Ledger;
use super::edit::{Speaking, correct_length, drop_digests};
use crate::body::buffer::TooMuch;

/// A request and its body, if that could be read ahead.
pub(crate) struct Rewritable<'a> {
    /// Its fields.
    pub(crate) headers: &'a mut HeaderMap,
    /// The whole body; `None` if it was not read to its end.
    pub(crate) body: Option<Bytes>,
    /// The model call in it.
    pub(crate) model: Option<Speaking<'a>>,
    /// The memory limit, if that prevented reading the body.
    pub(crate) full: Option<TooMuch>,
    /// The largest body that is read ahead, bytes.
    pub(crate) limit: u64,
    /// The changed tool results of earlier requests in this scope.
    pub(crate) told_before: &'a ChangedResults,
    /// The tools that models called in this scope.
    pub(crate) called: &'a Called,
}

/// The result of changing a request.
#[derive(Default)]
pub(crate) struct Rewritten {
    /// The new body, if there is one.
    pub(crate) body: Option<Bytes>,
    /// Rules whose changes in earlier requests were repeated.
    pub(crate) again: Vec<RuleVerdict>,
    /// Identifies the request, if tool results in it were changed.
    pub(crate) changed_request: Option<u64>,
}

/// Why a rule has no effect on results that it changed before.
const REPEATED: &str = "the request was made before and not answered: the model is told again what the \
                        rule made of it then";

/// Repeats changes of earlier requests, and applies a plan's changes in order.
pub(crate) fn apply(
    decision: &Decision,
    request: &mut Rewritable<'_>,
    ledger: &dyn Ledger,
) -> Rewritten {
    let (model, sent) = match request.editable() {
        Ok(editable) => editable,
        Err(why) => {
            for (verdict, _) in &decision.plan.request_edits {
                ledger.bypassed(*verdict, why.clone());
            }
            return Rewritten::default();
        }
    };
    let terms = Terms {
        dialect: model.dialect,
        called: Some(request.called),
    };
    let mut rewritten = Rewritten::default();
    let mut repeats = false;
    if let Some(again) = request.told_before.again(terms, &sent) {
        rewritten.body = Some(again.body.into());
        rewritten.again = again.by;
        repeats = again.repeats;
        rewritten.changed_request = Some(model_input::request_key(&sent));
    }
    let mut here = Vec::new();
    for (verdict, edit) in &decision.plan.request_edits {
        let by = decision.verdicts.get(usize::from(*verdict));
        let of_results = of_results(edit);
        let has_changed = |again: &RuleVerdict| by.is_some_and(|by| by.rule.id == again.rule.id);
        if repeats && of_results.is_some() && rewritten.again.iter().any(has_changed) {
            ledger.bypassed(*verdict, REPEATED.to_owned());
            continue;
        }
        let before = rewritten.body.as_ref().unwrap_or(&sent);
        match model_input::rewrite(edit, terms, before) {
            Ok(after) => {
                ledger.applied(*verdict);
                if let (Some(failed), Some(by)) = (of_results, by) {
                    let bodies: [&[u8]; 3] = [&sent, before, &after];
                    let tools = request.told_before.keep(terms, bodies, failed, by);
                    ledger.changed_results(*verdict, tools);
                    rewritten.changed_request = Some(model_input::request_key(&sent));
                }
                here.extend(by.map(|by| (*verdict, by.rule.id.as_str())));
                rewritten.body = Some(after.into());
            }
            Err(why) => ledger.bypassed(*verdict, why),
        }
    }
    // A rule that changes something here is already in the journal.
    rewritten.again.retain(|again| {
        let listed = here.iter().find(|(_, rule)| *rule == again.rule.id);
        if let (Some((verdict, _)), Some(tools)) = (listed, &again.told_of) {
            ledger.changed_results(*verdict, tools.to_vec());
        }
        listed.is_none()
    });
    if let Some(body) = &rewritten.body {
        drop_digests(request.headers);
        correct_length(request.headers, body.len() as u64);
    }
    rewritten
}

/// For a change to tool results: whether it marks them as failures.
fn of_results(edit: &RequestEdit) -> Option<bool> {
    match edit {
        RequestEdit::Results(_, change) => Some(matches!(change, ResultChange::Failure(_))),
        RequestEdit::Inject(..) => Some(false),
        RequestEdit::Poison(_)
        | RequestEdit::Pad(_)
        | RequestEdit::Contradict(_)
        | RequestEdit::Attach(_) => None,
    }
}

impl<'a> Rewritable<'a> {
    /// The model call and its body, or why they must not be changed.
    fn editable(&self) -> Result<(Speaking<'a>, Bytes), String> {
        let Some(model) = self.model else {
            return Err("the request is none of a dialect that Squall knows".to_owned());
        };
        if let Some(why) = signature::forbids_edits(self.headers, model.target) {
            return Err(why.to_owned());
        }
        if let Some(coding) = self.headers.get(CONTENT_ENCODING) {
            return Err(format!(
                "the request is compressed ({}), and only plain ones are changed",
                shown(coding)
            ));
        }
        let Some(body) = self.body.clone() else {
            if let Some(full) = self.full {
                return Err(full.to_string());
            }
            return Err(match self.headers.get(CONTENT_LENGTH) {
                Some(length) => format!(
                    "the request ({} bytes) is longer than `inspect_limit` ({} bytes)",
                    shown(length),
                    self.limit
                ),
                None => format!(
                    "the request is longer than `inspect_limit` ({} bytes), or of a kind that is not \
                     read ahead",
                    self.limit
                ),
            });
        };
        Ok((model, body))
    }
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use squall_dialects::{Target, by_name};
    use squall_profiles::changes::{Padding, PaddingPlace};

    use super::*;
    use crate::faults::testing::{Remembered, speaking};

    const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;

    fn contradict(text: &str) -> RequestEdit {
        RequestEdit::Contradict(text.to_owned())
    }

    fn made(
        fields: &[(&'static str, &'static str)],
        body: Option<&'static str>,
        edits: &[RequestEdit],
    ) -> (Option<String>, HeaderMap, Remembered) {
        let mut headers: HeaderMap = fields
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        let mut decision = Decision::default();
        decision.plan.request_edits = (0..).zip(edits.iter().cloned()).collect();
        let ledger = Remembered::default();
        let dialect = by_name("openai-chat").expect("a dialect");
        let mut request = Rewritable {
            headers: &mut headers,
            body: body.map(Bytes::from),
            model: Some(Speaking {
                target: Target::new("/v1/chat/completions"),
                ..speaking(dialect)
            }),
            full: None,
            limit: 100,
            told_before: &ChangedResults::default(),
            called: &Called::default(),
        };
        let made = apply(&decision, &mut request, &ledger);
        let made = made
            .body
            .map(|body| String::from_utf8(body.to_vec()).expect("UTF-8"));
        (made, headers, ledger)
    }

    #[test]
    fn changes_follow_each_other_and_the_length_follows_them() {
        let fields = [
            ("content-length", "57"),
            ("content-md5", "Q2hlY2sgSW50ZWdyaXR5IQ=="),
            ("x-other", "kept"),
        ];
        let (body, headers, ledger) =
            made(&fields, Some(BODY), &[contradict("A"), contradict("B")]);
        let body = body.expect("a new body");
        assert_eq!(body, BODY.replace("Hi", "Hi\\n\\nA\\n\\nB"));
        assert_eq!(headers["content-length"], body.len().to_string());
        assert!(!headers.contains_key("content-md5") && headers["x-other"] == "kept");
        assert_eq!(*ledger.applied.borrow(), [0, 1]);
    }

    #[test]
    fn a_request_without_a_length_gets_none() {
        let (body, headers, _) = made(&[], Some(BODY), &[contradict("A")]);
        assert!(body.is_some() && headers.is_empty());
    }

    #[test]
    fn one_change_that_cannot_be_made_leaves_the_others() {
        let pad = RequestEdit::Pad(Padding {
            tokens: 3,
            position: PaddingPlace::End,
        });
        let no_user = r#"{"model":"m","messages":[{"role":"system","content":"Hi"}]}"#;
        let (body, _, ledger) = made(&[], Some(no_user), &[pad, contradict("A")]);
        assert_eq!(body, Some(no_user.replace("Hi", "Hi\\n\\nA")));
        assert_eq!(*ledger.applied.borrow(), [1]);
        let why = "the request has no message of the user's".to_owned();
        assert_eq!(*ledger.bypassed.borrow(), [(0, why)]);
    }

    #[test]
    fn what_cannot_be_changed_says_why_and_stays() {
        let signed = "AWS4-HMAC-SHA256 Credential=x, Signature=00";
        for (fields, body, why) in [
            (
                &[("authorization", signed)][..],
                Some(BODY),
                "the request is signed (AWS Signature Version 4): changed, it would be refused",
            ),
            (
                &[("content-encoding", "gzip")],
                None,
                "the request is compressed (gzip), and only plain ones are changed",
            ),
            (
                &[("content-length", "101")],
                None,
                "the request (101 bytes) is longer than `inspect_limit` (100 bytes)",
            ),
            (
                &[],
                None,
                "the request is longer than `inspect_limit` (100 bytes), or of a kind that is not \
                 read ahead",
            ),
            (
                &[],
                Some("[]"),
                "the request has neither instructions nor a message of the user's to add to",
            ),
        ] {
            let (made, headers, ledger) = made(fields, body, &[contradict("A")]);
            assert!(made.is_none());
            assert_eq!(headers.len(), fields.len());
            ledger.only_bypassed(0, why);
        }
    }
}
