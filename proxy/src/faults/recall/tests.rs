//! Answers given again.

use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;

use super::{Owner, Recall};
use crate::body::{self, AgentBody};
use crate::faults::testing::{Late, context, drain, let_others_run, on_the_wire, paused, pieces};

fn owner(rule: &str) -> Owner {
    Owner {
        activation: "a".into(),
        key: "s".into(),
        rule: rule.into(),
    }
}

fn full(body: &'static str) -> Response<AgentBody> {
    Response::new(body::full(body))
}

/// Lets an answer pass.
async fn pass(recall: &Recall, rule: &str, call: u64, response: Response<AgentBody>) -> Vec<u8> {
    drain(recall.note(owner(rule), call, response).into_body())
        .await
        .bytes
}

async fn text(kept: Option<super::StoredAnswer>) -> Option<String> {
    let body = kept?.into_response(&Method::GET).into_body();
    Some(String::from_utf8(drain(body).await.bytes).unwrap())
}

#[test]
fn stale_is_the_previous_answer_and_swapped_the_latest_to_another_call() {
    paused(async {
        let recall = Recall::new(100, 1000);
        assert!(recall.stale(&owner("r")).is_none());
        // Per row: which call, its answer; then stale, and swapped for calls 1, 2 and 3.
        for (call, answer, stale, swapped) in [
            (1, "A1", "A1", [None, Some("A1"), Some("A1")]),
            (2, "B1", "B1", [Some("B1"), Some("A1"), Some("B1")]),
            (2, "B2", "B2", [Some("B2"), Some("A1"), Some("B2")]),
            (3, "C1", "C1", [Some("C1"), Some("C1"), Some("B2")]),
        ] {
            pass(&recall, "r", call, full(answer)).await;
            assert_eq!(
                text(recall.stale(&owner("r"))).await.as_deref(),
                Some(stale)
            );
            for (asking, expected) in (1..).zip(swapped) {
                let given = text(recall.swapped(&owner("r"), asking)).await;
                assert_eq!(given.as_deref(), expected, "{asking} after {answer}");
            }
        }
        assert!(recall.stale(&owner("another rule")).is_none());
    });
}

#[test]
fn the_reply_of_a_stream_is_kept_before_the_stream_ends() {
    paused(async {
        let recall = Recall::new(100, 1000);
        let reply = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
        let mut response = pieces(["data: \n\n", reply, ": the end\n\n"]).response();
        let events = http::HeaderValue::from_static("text/event-stream");
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, events);
        let mut body = recall.note(owner("r"), 1, response).into_body();
        body.frame().await.unwrap().unwrap();
        assert!(recall.stale(&owner("r")).is_none());
        body.frame().await.unwrap().unwrap();
        let kept = text(recall.stale(&owner("r"))).await;
        assert_eq!(kept, Some(format!("data: \n\n{reply}")));
    });
}

#[test]
fn head_body_and_trailers_come_again_as_they_were() {
    paused(async {
        let recall = Recall::new(100, 1000);
        let mut response = pieces(["one, ", "two"])
            .then_trailers("grpc-status", "5")
            .response();
        *response.status_mut() = StatusCode::ACCEPTED;
        response
            .headers_mut()
            .insert("content-encoding", "br".parse().unwrap());
        assert_eq!(pass(&recall, "r", 1, response).await, b"one, two");

        let again = recall
            .stale(&owner("r"))
            .unwrap()
            .into_response(&Method::GET);
        assert_eq!(again.status(), StatusCode::ACCEPTED);
        assert_eq!(again.headers()["content-encoding"], "br");
        let drained = drain(again.into_body()).await;
        assert_eq!(drained.bytes, b"one, two");
        assert_eq!(drained.trailers.unwrap()["grpc-status"], "5");
    });
}

#[test]
fn a_copy_does_not_change_what_passes() {
    paused(async {
        let recall = Recall::new(100, 1000);
        let response = pieces(["one, ", "two"]).with_length().response();
        let noted = recall.note(owner("r"), 1, response);
        assert_eq!(http_body::Body::size_hint(noted.body()).exact(), Some(8));
        let drained = drain(noted.into_body()).await;
        assert_eq!(
            drained
                .pieces
                .iter()
                .map(|piece| piece.1)
                .collect::<Vec<_>>(),
            [5, 3]
        );
        // hyper asks no further than the announced end, and it is kept all the same.
        assert!(recall.stale(&owner("r")).is_some());
    });
}

#[test]
fn only_what_passed_to_its_end_is_kept() {
    paused(async {
        let recall = Recall::new(100, 1000);
        pass(
            &recall,
            "broken",
            1,
            pieces(["abc"]).then_breaks().response(),
        )
        .await;
        pass(&recall, "large", 1, full(&"x".repeat(101).leak()[..])).await;
        drop(recall.note(owner("dropped"), 1, pieces(["abc"]).response()));
        for rule in ["broken", "large", "dropped"] {
            assert!(recall.stale(&owner(rule)).is_none(), "{rule}");
        }
        pass(&recall, "empty", 1, full("")).await;
        assert!(recall.stale(&owner("empty")).is_some());
    });
}

#[test]
fn an_answer_that_nobody_got_is_kept_too() {
    on_the_wire(async {
        let recall = Recall::new(100, 1000);
        let (context, _) = context();
        for (body, declared, kept) in [
            (pieces(["A1"]), true, "A1"),
            (pieces(["A2"]), false, "A2"),
            (pieces(["A3"]).then_breaks(), true, "A2"),
            (pieces(["x".repeat(101)]), true, "A2"),
        ] {
            let mut response = body.response();
            if declared {
                response.headers_mut().insert("content-length", 2.into());
            }
            recall
                .note_unseen(owner("r"), 1, response, &context.inspect)
                .await;
            if !declared {
                let_others_run().await;
            }
            assert_eq!(text(recall.stale(&owner("r"))).await.as_deref(), Some(kept));
        }
    });
}

#[test]
fn an_answer_without_a_declared_end_is_not_waited_for() {
    on_the_wire(async {
        let recall = Recall::new(100, 1000);
        let (context, _) = context();
        let (_never, told) = tokio::sync::oneshot::channel();
        let endless = Response::new(body::boxed(Late::new(told, "never")));
        recall
            .note_unseen(owner("r"), 1, endless, &context.inspect)
            .await;
        assert!(recall.stale(&owner("r")).is_none());
    });
}

#[test]
fn an_answer_to_get_is_given_to_head_without_its_body() {
    paused(async {
        let recall = Recall::new(100, 1000);
        pass(&recall, "r", 1, full("A1")).await;
        let again = recall
            .stale(&owner("r"))
            .unwrap()
            .into_response(&Method::HEAD);
        assert!(drain(again.into_body()).await.bytes.is_empty());
    });
}

#[test]
fn who_was_idle_longest_is_forgotten_when_memory_runs_out() {
    paused(async {
        let recall = Recall::new(40, 100);
        let forty = || full(&"x".repeat(40).leak()[..]);
        pass(&recall, "first", 1, forty()).await;
        pass(&recall, "second", 1, forty()).await;
        recall.stale(&owner("first"));
        pass(&recall, "third", 1, forty()).await;
        for (rule, kept) in [("first", true), ("second", false), ("third", true)] {
            assert_eq!(recall.stale(&owner(rule)).is_some(), kept, "{rule}");
        }
    });
}
