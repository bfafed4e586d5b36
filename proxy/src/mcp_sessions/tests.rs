use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body::Body as _;
use proptest::prelude::*;
use squall_dialects::mcp::{Asked, Call};
use squall_profiles::fault::McpEdit;
use squall_profiles::faults::mcp_answer::Change;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::carry_out::body::AgentBody;
use crate::carry_out::recall::Recall;
use crate::carry_out::testing::{drain, let_others_run, paused, pieces};
use crate::upstream::Scheme;

fn party(scope: &str) -> Party {
    Party {
        origin: Origin::new(Scheme::Http, "server", 80),
        scope: Arc::from(scope),
        credentials: 0,
    }
}

fn given(name: &str) -> Key {
    (party("default"), Name::Given(name.to_owned()))
}

fn small() -> Sessions {
    Sessions::new(Bounds {
        sessions: 3,
        answers: 2,
        age: Duration::from_secs(1),
    })
}

fn call(id: u64) -> Call {
    let asked =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
    Asked::read(asked.as_bytes()).unwrap().calls.remove(0)
}

/// An answer under another id, and who is told of it.
fn wrong_id(id: u64) -> (Arc<Awaited>, UnboundedReceiver<Told>) {
    let (to, told) = unbounded_channel();
    let awaited = Awaited {
        call: call(id),
        typed: false,
        changes: vec![(0, Change::Mcp(McpEdit::WrongId))],
        holds: Vec::new(),
        withheld: false,
        remember: Vec::new(),
        recall: Recall::default(),
        lists: None,
        teller: Teller::new(to),
    };
    (Arc::new(awaited), told)
}

fn bypassed(told: &mut UnboundedReceiver<Told>) -> String {
    match told.try_recv() {
        Ok(Told::Bypassed(0, why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn however_many_sessions_there_are_no_more_are_kept_than_the_bound() {
    let sessions = small();
    for number in 0..1000 {
        assert!(sessions.find(&given(&number.to_string())).is_some());
        assert!(sessions.count() <= 3);
    }
    // Those that are in use stay, whoever else comes.
    let attached = sessions.attach(given("listening")).unwrap();
    let awaiting = sessions.find(&given("awaiting")).unwrap();
    let (answer, mut told) = wrong_id(1);
    awaiting.await_answer(answer, 2);
    let endpoint = (party("default"), Name::Endpoint("/m".to_owned()));
    let of_one_stream = sessions.attach(endpoint.clone()).unwrap();
    for number in 0..1000 {
        assert!(sessions.find(&given(&number.to_string())).is_none());
        assert!(sessions.attach(given(&number.to_string())).is_none());
    }
    assert_eq!(sessions.count(), 3);
    assert!(Arc::ptr_eq(
        &awaiting,
        &sessions.find(&given("awaiting")).unwrap()
    ));
    assert!(told.try_recv().is_err());
    drop(of_one_stream);
    assert!(sessions.find(&endpoint).is_none());
    drop(attached);
    assert_eq!(sessions.count(), 2);
    assert!(sessions.find(&given("another")).is_some());
}

#[test]
fn over_the_bound_of_a_session_the_oldest_answer_is_given_up() {
    let sessions = small();
    let session = sessions.find(&given("one")).unwrap();
    let mut all: Vec<_> = (1..=1000).map(wrong_id).collect();
    for (answer, _) in &all {
        session.await_answer(Arc::clone(answer), 2);
    }
    for (_, told) in &mut all[..998] {
        assert_eq!(
            bypassed(told),
            "more than 2 answers are awaited in the session"
        );
    }
    for (_, told) in &mut all[998..] {
        assert!(told.try_recv().is_err());
    }
    // What is said in the server's place has a bound of its own.
    let (to, mut told) = unbounded_channel();
    for _ in 0..3 {
        let says = Says::Once(bytes::Bytes::from_static(b"data: x\n\n"));
        session.say(says, 0, Teller::new(to.clone()), 2);
    }
    assert_eq!(
        bypassed(&mut told),
        "more than 2 made-up answers wait in the session"
    );
    assert!(told.try_recv().is_err());
}

#[test]
fn a_session_is_its_party_s_alone() {
    let sessions = small();
    let one = sessions.find(&given("one")).unwrap();
    let others = [
        party("another"),
        Party {
            credentials: 1,
            ..party("default")
        },
        Party {
            origin: Origin::new(Scheme::Http, "other", 80),
            ..party("default")
        },
    ];
    let (answer, _told) = wrong_id(1);
    one.await_answer(answer, 2);
    for other in others {
        let other = sessions
            .find(&(other, Name::Given("one".to_owned())))
            .unwrap();
        assert!(!Arc::ptr_eq(&one, &other) && !other.wants(true));
    }
}

/// A stream of the session `one`.
fn listening(sessions: &Sessions, resumed: bool, body: AgentBody) -> SessionStream {
    let attached = sessions.attach(given("one")).unwrap();
    SessionStream::listening(attached, resumed, body, 1 << 20)
}

#[test]
fn who_ends_the_session_gives_up_what_is_awaited() {
    let sessions = small();
    let session = sessions.find(&given("one")).unwrap();
    let (answer, mut told) = wrong_id(1);
    session.await_answer(answer, 2);
    sessions.end(&given("one"));
    assert_eq!(bypassed(&mut told), "the agent has ended the session");
    let (answer, mut told) = wrong_id(2);
    session.await_answer(answer, 2);
    assert_eq!(bypassed(&mut told), "the agent has ended the session");
}

const ENDPOINT: &str = "event: endpoint\r\ndata: /m?s=1\r\n\r\n";

/// A stream that begins a session of 2024-11-05.
fn beginning(sessions: &Sessions, body: AgentBody) -> SessionStream {
    let base = Base {
        path: "/sse".to_owned(),
        is_reverse: false,
    };
    let begins_one = Box::new(|| {});
    SessionStream::beginning(
        sessions.clone(),
        party("default"),
        base,
        begins_one,
        body,
        1 << 20,
    )
}

#[test]
fn a_stream_begins_a_session_and_ends_it() {
    paused(async {
        let sessions = small();
        let (more, late) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
        let mut stream = Box::pin(beginning(&sessions, AgentBody::boxed(Fed(late))));
        let mut next = async || match poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        more.send(ENDPOINT).unwrap();
        assert_eq!(next().await, ENDPOINT);
        let key = (party("default"), Name::Endpoint("/m?s=1".to_owned()));
        let session = sessions.find(&key).unwrap();
        // Between two events, and nowhere else.
        more.send("data: 1\n").unwrap();
        assert_eq!(next().await, "data: 1\n");
        let (to, mut told) = unbounded_channel();
        let says = Says::Once(bytes::Bytes::from_static(b"data: made up\n\n"));
        session.say(says, 0, Teller::new(to), 2);
        more.send("data: 2\n").unwrap();
        more.send("\n").unwrap();
        assert_eq!(next().await + &next().await, "data: 2\n\ndata: made up\n\n");
        assert_eq!(told.try_recv(), Ok(Told::Applied(0)));
        let (answer, mut told) = wrong_id(1);
        session.await_answer(answer, 2);
        drop(stream);
        assert!(sessions.find(&key).is_none());
        assert_eq!(bypassed(&mut told), ENDED);
    });
}

#[test]
fn whoever_listens_is_woken_by_what_is_to_be_said() {
    paused(async {
        let sessions = small();
        let (more, late) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
        let mut stream = Box::pin(beginning(&sessions, AgentBody::boxed(Fed(late))));
        more.send(ENDPOINT).unwrap();
        let first = poll_fn(|cx| stream.as_mut().poll_frame(cx)).await;
        assert!(first.is_some());
        let key = (party("default"), Name::Endpoint("/m?s=1".to_owned()));
        let session = sessions.find(&key).unwrap();
        let (to, _told) = unbounded_channel();
        let says = async {
            let_others_run().await;
            let says = Says::Once(bytes::Bytes::from_static(b"data: made up\n\n"));
            session.say(says, 0, Teller::new(to), 2);
        };
        let (heard, ()) = tokio::join!(poll_fn(|cx| stream.as_mut().poll_frame(cx)), says);
        let heard = heard.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&heard[..], b"data: made up\n\n");
    });
}

/// A body that is fed by the test.
struct Fed(tokio::sync::mpsc::UnboundedReceiver<&'static str>);

impl http_body::Body for Fed {
    type Data = bytes::Bytes;
    type Error = crate::broken::Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        let next = std::task::ready!(self.0.poll_recv(cx));
        let frame =
            next.map(|text| http_body::Frame::data(bytes::Bytes::from_static(text.as_bytes())));
        Poll::Ready(frame.map(Ok))
    }
}

#[test]
fn a_stream_that_breaks_off_breaks_off_and_leaves_the_answer_to_be_fetched() {
    paused(async {
        let sessions = small();
        let session = sessions.find(&given("one")).unwrap();
        let (answer, mut told) = wrong_id(7);
        session.await_answer(Arc::clone(&answer), 2);
        let half = r#"data: {"jsonrpc":"2.0","id":7,"#;
        let body = pieces(["id: 1\ndata: \n\n", half]).then_breaks();
        let stream = SessionStream::answering(
            Arc::clone(&session),
            vec![answer],
            AgentBody::boxed(body),
            1 << 20,
        );
        let drained = drain(stream).await;
        assert!(drained.error.is_some());
        assert!(drained.bytes.ends_with(half.as_bytes()));
        assert!(told.try_recv().is_err());
        let event = format!("id: 2\n{half}\"result\":{{}}}}\n\n");
        let again = || listening(&sessions, true, AgentBody::boxed(pieces([event.clone()])));
        let expected = event.replace("\"id\":7", "\"id\":1000007");
        // However often it is fetched.
        for _ in 0..2 {
            let fetched = drain(again()).await;
            assert_eq!(String::from_utf8(fetched.bytes).unwrap(), expected);
        }
        assert_eq!(told.try_recv(), Ok(Told::Applied(0)));
    });
}

#[test]
fn what_cannot_be_fetched_again_is_given_up_with_the_stream() {
    paused(async {
        let sessions = small();
        let session = sessions.find(&given("one")).unwrap();
        let (answer, mut told) = wrong_id(7);
        session.await_answer(Arc::clone(&answer), 2);
        let body = AgentBody::boxed(pieces([": ping\n\n"]));
        drain(SessionStream::answering(
            Arc::clone(&session),
            vec![answer],
            body,
            1 << 20,
        ))
        .await;
        assert_eq!(bypassed(&mut told), "the answer holds none to the call");
        assert!(!session.wants(true));
    });
}

/// Events in any layout: answers under a few ids, notifications, comments, what is no event.
fn events() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let event = (0..7u8, 0..4u8, any::<bool>()).prop_map(|(kind, id, named)| {
        let name = if named { "event: message|" } else { "" };
        match kind {
            0 => ": ping||".to_owned(),
            1 => "data: ||".to_owned(),
            2 => {
                format!("{name}data: {{\"jsonrpc\":\"2.0\",|data: \"id\":{id},\"result\":{{}}}}||")
            }
            3 => format!("id: {id}|{name}data: {{\"method\":\"x\",\"id\":{id}}}||"),
            4 => format!("{name}data: {{\"id\":{id},||"),
            _ => {
                format!("{name}data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"a\":1}}}}||")
            }
        }
    });
    (proptest::collection::vec(event, 0..12), line, any::<bool>()).prop_map(
        |(events, line, cut)| {
            let mut all = events.concat().replace('|', line).into_bytes();
            if cut {
                all.truncate(all.len() - all.len() / 9);
            }
            all
        },
    )
}

/// The pieces of a stream that is cut at these shares of it.
fn cut_up(stream: &[u8], cuts: &[u8]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts
        .iter()
        .map(|cut| stream.len() * usize::from(*cut) / 256)
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([stream.len()]) {
        pieces.push(stream[from..place].to_vec());
        from = place;
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// What the agent gets of a stream in pieces, while the answers with these ids are awaited.
fn got(pieces_of_it: Vec<Vec<u8>>, ids: &[u64]) -> Vec<u8> {
    paused(async {
        let sessions = Sessions::default();
        let session = sessions.find(&given("one")).unwrap();
        for id in ids {
            session.await_answer(wrong_id(*id).0, 64);
        }
        drain(listening(
            &sessions,
            true,
            AgentBody::boxed(pieces(pieces_of_it)),
        ))
        .await
        .bytes
    })
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(stream in events(), cuts: Vec<u8>) {
        for ids in [&[][..], &[1], &[0, 1, 2, 3]] {
            let whole = got(vec![stream.clone()], ids);
            let in_pieces = got(cut_up(&stream, &cuts), ids);
            prop_assert_eq!(String::from_utf8_lossy(&in_pieces), String::from_utf8_lossy(&whole));
            let bytes: Vec<Vec<u8>> = stream.iter().map(|byte| vec![*byte]).collect();
            prop_assert_eq!(got(bytes, ids), whole);
        }
    }

    #[test]
    fn nothing_awaited_is_nothing_changed(stream in events(), cuts: Vec<u8>) {
        prop_assert_eq!(got(cut_up(&stream, &cuts), &[]), stream.clone());
        // Nor is anything that nobody asked for here.
        prop_assert_eq!(got(cut_up(&stream, &cuts), &[77]), stream);
    }
}
