//! What the store promises of recordings, on each database.

use serde_json::json;
use squall_control_api::store::{RecordedRow, RecordingSize, RecordingState, StoredRecording};
use squall_journal::tape::Recorded;

use crate::store::Ground;

fn recording(id: &str, workspace: &str) -> StoredRecording {
    StoredRecording {
        id: id.to_owned(),
        workspace: workspace.to_owned(),
        name: Some("caf\u{e9}".to_owned()),
        scope: None,
        state: RecordingState::Recording,
        daemon: "d".to_owned(),
        started_at: 1,
        seen_at: 2,
        ended_at: None,
        size: RecordingSize::default(),
    }
}

pub(crate) fn recorded(id: &str) -> Recorded {
    let entry = json!({
        "id": id, "scope": "default", "started_ms": 1, "kind": "tool", "dialect": null,
        "outcome": "ok", "fingerprint": u64::MAX, "input": null, "answer": null,
        "request": { "method": "GET", "url": "http://h/\0", "headers": [["a", "b"]],
            "body": { "base64": "/wA=" }, "bytes": 2, "over_limit": false },
        "version": "HTTP/1.1", "response_bytes": 0, "duration_ms": 3, "faults": [],
    });
    serde_json::from_value(entry).expect("an exchange")
}

pub(crate) async fn recordings_come_back_as_they_were(ground: &Ground<'_>) {
    let store = ground.open().await;
    let (mut mine, theirs) = (recording("b", "a"), recording("c", "other"));
    for one in [&recording("a", "a"), &mine, &theirs] {
        store.add_recording(one, 10).await.expect("written");
    }
    let exchanges: Vec<_> = (0..130).map(|n| recorded(&format!("{n:03}"))).collect();
    mine.size.exchanges = 130;
    mine.ended_at = Some(9);
    mine.state = RecordingState::Full;
    let rows: Vec<_> = exchanges.iter().rev().map(RecordedRow::of).collect();
    for _ in 0..2 {
        // Written twice, as after an answer that was lost on its way.
        store.keep_recorded(&mine, &rows).await.expect("written");
    }
    let opened = ground.open().await;
    let list = async |before: &str, limit: usize| {
        opened
            .recordings("a", before, limit)
            .await
            .expect("an answer")
    };
    assert_eq!(list("", 9).await, [mine.clone(), recording("a", "a")]);
    assert_eq!(list("", 1).await, [mine.clone()]);
    assert_eq!(list("b", 9).await, [recording("a", "a")]);
    let find = async |workspace: &str| opened.recording(workspace, "b").await.expect("an answer");
    assert_eq!(find("a").await, Some(mine));
    assert_eq!(find("other").await, None);
    assert_eq!(opened.recorded("b").await.expect("an answer"), exchanges);
    assert_eq!(opened.cut_recordings().await.expect("an answer"), 2);
    let cut = opened.recording("other", "c").await.expect("an answer");
    let cut = cut.expect("a recording");
    assert_eq!((cut.state, cut.ended_at), (RecordingState::Cut, Some(2)));
}

pub(crate) async fn the_oldest_recordings_that_have_ended_make_room(ground: &Ground<'_>) {
    let store = ground.open().await;
    for (number, state) in [
        (1, RecordingState::Stopped),
        (2, RecordingState::Recording),
        (3, RecordingState::Cut),
        (4, RecordingState::Full),
    ] {
        let mut one = recording(&number.to_string(), "a");
        store.add_recording(&one, 9).await.expect("written");
        one.state = state;
        let rows = [RecordedRow::of(&recorded("x"))];
        store.keep_recorded(&one, &rows).await.expect("written");
    }
    store
        .add_recording(&recording("5", "a"), 2)
        .await
        .expect("written");
    let left = store.recordings("a", "", 9).await.expect("an answer");
    let left: Vec<_> = left.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(left, ["5", "4", "2"], "one that runs stays");
    assert!(store.recorded("1").await.expect("an answer").is_empty());
    assert_eq!(store.recorded("4").await.expect("an answer").len(), 1);
}
