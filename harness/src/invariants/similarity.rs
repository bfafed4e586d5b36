//! `similarity`: the answer is similar to an expected one, by its words, or by embeddings if the suite has
//! `embeddings`.

use super::words::{likeness, quoted};
use super::{Check, InvariantKind, Subject, Verdict};
use crate::outside::Replies;

/// `expected`, by default the clean answer of the same prompt; `threshold` 0 to 1, default 0.8.
pub(super) const SIMILARITY: InvariantKind = InvariantKind::answer("similarity", |fields| {
    let about = "The answer that is expected; without it the clean answer.";
    let expected = fields.words("expected", about).map(|text| text.value);
    let about = "How like it has to be, 0 to 1; default 0.8.";
    let threshold = fields
        .real("threshold", about, 0.0..=1.0, "")
        .unwrap_or(0.8);
    if !fields.has("expected") && !fields.has("baseline") {
        let what = "the answer that is expected, or `baseline: auto`";
        fields.missing("expected", what);
        return None;
    }
    Some(Check {
        needs_baseline: expected.is_none(),
        ..Check::new(move |subject| {
            let clean = subject.baseline.map(|clean| clean.answer);
            match (&expected, clean) {
                (Some(expected), _) => alike(subject, expected, threshold),
                (None, None) => Verdict::error("there is no clean answer to compare with"),
                (None, Some(clean)) => match &clean.error {
                    Some(error) => Verdict::error(format!("the clean run gave no answer: {error}")),
                    None => alike(subject, &clean.text, threshold),
                },
            }
        })
    })
});

/// Whether the answer and a text reach this similarity.
pub(super) fn alike(subject: &Subject<'_>, expected: &str, threshold: f64) -> Verdict {
    let answer = &subject.answer.text;
    let is_empty = answer.trim().is_empty() || expected.trim().is_empty();
    let likeness = if subject.replies.embeds() && !is_empty {
        match by_meaning(subject.replies, answer, expected) {
            Ok(likeness) => likeness,
            Err(why) => return Verdict::error(why),
        }
    } else {
        likeness(answer, expected)
    };
    let reason = format!(
        "similarity {:.2} to {}, required is {threshold}",
        likeness.max(0.0),
        quoted(expected)
    );
    let verdict = Verdict::of(likeness >= threshold, reason);
    verdict.with_margin(likeness - threshold, 1.0 - threshold)
}

/// The cosine similarity of two texts' embeddings.
fn by_meaning(replies: &Replies, one: &str, other: &str) -> Result<f64, String> {
    // Both lookups must run, so that both missing questions are recorded.
    let (one, other) = (replies.vector(one), replies.vector(other));
    let (one, other) = (one?, other?);
    let product = |one: &[f32], other: &[f32]| -> f64 {
        let pairs = one.iter().zip(other);
        pairs
            .map(|(one, other)| f64::from(*one) * f64::from(*other))
            .sum()
    };
    let lengths = (product(one, one) * product(other, other)).sqrt();
    if one.len() != other.len() || lengths <= 0.0 {
        return Err("the embeddings of the two texts cannot be compared".to_owned());
    }
    Ok((product(one, other) / lengths).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use crate::agents::testing::{Reply, Server, json as answers};
    use crate::answer::AgentAnswer;
    use crate::invariants::testing::{Outcome::*, asked_outside, judged, judged_beside};

    #[tokio::test]
    #[rustfmt::skip]
    async fn with_embeddings_texts_are_compared_by_what_they_mean() {
        let near =
            r#"{"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [4, 3]}]}"#;
        let far =
            r#"{"data": [{"index": 0, "embedding": [0, 1]}, {"index": 1, "embedding": [1, 0]}]}"#;
        let nothing =
            r#"{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [1, 0]}]}"#;
        let refused = Reply::With(404, "application/json", "{}".into());
        let unchanged = "{type: behavior_unchanged, baseline: It is sunny}";
        for (written, reply, expected, told) in [
            ("{type: similarity, expected: It is sunny}", answers(near), Holds, "similarity 0.96"),
            (unchanged, answers(near), Holds, "similarity 0.96"),
            ("{type: similarity, expected: It is sunny}", answers(far), Fails, "similarity 0.00"),
            (unchanged, answers(nothing), Errs, "cannot be compared"),
            (unchanged, refused, Errs, "/v1/embeddings answered with status 404"),
        ] {
            let server = Server::start(vec![reply]).await;
            let head = format!(
                "embeddings: {{name: minilm, base_url: '{}/v1/'}}\n",
                server.url
            );
            let (found, reason) = asked_outside(&head, written, "The sun is out").await;
            assert_eq!(found, expected, "{written}: {reason}");
            assert!(reason.contains(told), "{reason}");
            let requests = server.requests();
            let sent: serde_json::Value = serde_json::from_str(&requests[0].body).expect("JSON");
            let texts = serde_json::json!(["It is sunny", "The sun is out"]);
            assert_eq!((&sent["model"], &sent["input"]), (&"minilm".into(), &texts));
        }
    }

    #[tokio::test]
    async fn an_empty_answer_needs_no_embedding() {
        let head = "embeddings: {name: minilm, base_url: 'http://127.0.0.1:1/v1'}\n";
        let (found, _) = asked_outside(head, "{type: similarity, expected: x}", " ").await;
        assert_eq!(found, Fails);
    }

    #[test]
    fn texts_are_compared_by_their_words() {
        let written = "{type: similarity, expected: 'The flight to Paris leaves at nine', \
                       threshold: 0.7}";
        for (answer, expected) in [
            ("The flight to Paris leaves at nine.", Holds),
            ("the FLIGHT to Paris, it leaves at nine!", Holds),
            ("At nine leaves the flight to Paris", Holds),
            ("Bananas are rich in potassium", Fails),
            ("", Fails),
        ] {
            assert_eq!(judged(written, answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_clean_run_that_failed_is_nothing_to_compare_with() {
        let failed = AgentAnswer {
            error: Some("status 500".into()),
            ..AgentAnswer::default()
        };
        let written = "{type: similarity, baseline: auto}";
        assert_eq!(judged_beside(written, "", &failed), Errs);
        assert_eq!(
            judged_beside(written, "sunny", &AgentAnswer::of("sunny")),
            Holds
        );
    }

    #[test]
    fn a_bound_of_zero_is_a_bound() {
        assert_eq!(
            judged(
                "{type: similarity, expected: x, threshold: 0}",
                "quite else"
            ),
            Holds
        );
    }
}
