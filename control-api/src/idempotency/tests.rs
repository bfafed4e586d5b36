//! Tests of the layer over a route that counts its effects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, middleware};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{Request, StatusCode};
use squall_tests::postgres::Postgres;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

use super::{Clock, KEPT, KEY, Keys, millis, once};
use crate::store::{Begun, IdempotencyKey, KeptAnswer, Place, Store};

/// The route's effects, and when it may continue.
#[derive(Clone)]
struct Effects {
    count: Arc<AtomicU64>,
    may_act: Arc<Semaphore>,
    /// Number of requests that reached the route.
    come: Arc<AtomicU64>,
    time: Arc<AtomicU64>,
}

impl Effects {
    /// The route responds at once.
    fn free() -> Self {
        Self {
            count: Arc::default(),
            come: Arc::default(),
            may_act: Arc::new(Semaphore::new(1_000_000)),
            time: Arc::new(AtomicU64::new(1_800_000_000_000)),
        }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// A daemon on `store`.
    fn daemon(&self, store: Store) -> Router {
        let time = Arc::clone(&self.time);
        let clock: Clock = Arc::new(move || time.load(Ordering::SeqCst));
        let keys = Keys::new(store, vec!["/things/{name}"], clock);
        Router::new()
            .route("/things/{name}", post(act).get(act))
            .layer(CatchPanicLayer::new())
            .layer(middleware::from_fn_with_state(keys, once))
            .with_state(self.clone())
    }
}

async fn act(State(effects): State<Effects>, body: String) -> Response {
    effects.come.fetch_add(1, Ordering::SeqCst);
    let _may = effects.may_act.acquire().await.expect("never closed");
    let number = effects.count.fetch_add(1, Ordering::SeqCst) + 1;
    match body.as_str() {
        "fail" => StatusCode::BAD_GATEWAY.into_response(),
        "panic" => panic!("as it was told"),
        "secret" => ([(CACHE_CONTROL, "no-store")], "squall_secret").into_response(),
        "long" => "x".repeat(100_000).into_response(),
        _ => {
            let place = [(LOCATION, format!("/things/{number}"))];
            let answer = format!("{number} {body}");
            (StatusCode::CREATED, place, answer).into_response()
        }
    }
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct Answer {
    status: u16,
    place: String,
    body: String,
}

async fn ask(daemon: &Router, method: &str, path: &str, key: &str, body: &'static str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(KEY, key)
        .body(Body::from(body))
        .expect("a request");
    let response = daemon.clone().oneshot(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let place = head
        .headers
        .get(LOCATION)
        .map_or("", |place| place.to_str().unwrap());
    Answer {
        status: head.status.as_u16(),
        place: place.to_owned(),
        body: String::from_utf8(body.into()).expect("text"),
    }
}

async fn post_to(daemon: &Router, path: &str, key: &str, body: &'static str) -> Answer {
    ask(daemon, "POST", path, key, body).await
}

/// Two daemons with one effect: on one PostgreSQL, or two routers on one store.
async fn on_each<F: Future<Output = ()>>(name: &str, check: impl Fn(Store, Store) -> F) {
    let home = TempDir::new().expect("a directory");
    let store = Store::open(Place::in_home(home.path())).await;
    let store = store.expect("a store");
    check(store.clone(), store).await;
    let store = Store::in_memory();
    check(store.clone(), store).await;
    let server = Postgres::start();
    server.database(name);
    let place = Place::parse(&server.url(name), home.path(), home.path()).expect("a place");
    let one = Store::open(place.clone()).await.expect("a store");
    let other = Store::open(place).await.expect("a store");
    check(one, other).await;
}

#[tokio::test]
async fn the_first_answer_is_given_again_and_only_to_the_same_request() {
    on_each("again", async |store, other_store| {
        let effects = Effects::free();
        let (daemon, other) = (effects.daemon(store), effects.daemon(other_store));
        let first = post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!((first.status, first.place.as_str()), (201, "/things/1"));
        assert_eq!(post_to(&daemon, "/things/a", "k", "x").await, first);
        assert_eq!(post_to(&other, "/things/a", "k", "x").await, first);
        for (path, body) in [("/things/a", "y"), ("/things/b", "x"), ("/things/a?q", "x")] {
            let refused = post_to(&other, path, "k", body).await;
            assert_eq!(refused.status, 422, "{path} {body}: {refused:?}");
            assert!(refused.body.contains("idempotency-key"), "{refused:?}");
        }
        assert_eq!(effects.count(), 1);
        assert_eq!(post_to(&daemon, "/things/a", "l", "x").await.status, 201);
        assert_eq!(effects.count(), 2);
        for _ in 0..2 {
            ask(&daemon, "GET", "/things/a", "k", "x").await;
        }
        assert_eq!(effects.count(), 4, "a GET is not held back by a key");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_at_once_are_one_effect() {
    on_each("fifty", async |store, other_store| {
        let effects = Effects::free();
        let daemons = [effects.daemon(store), effects.daemon(other_store)];
        let asked = (0..50).map(|number| {
            let daemon = daemons[number % 2].clone();
            tokio::spawn(async move { post_to(&daemon, "/things/a", "k", "x").await })
        });
        let asked: Vec<_> = asked.collect();
        for one in asked {
            let answer = one.await.expect("it ends");
            assert_eq!((answer.status, answer.body.as_str()), (201, "1 x"));
        }
        assert_eq!(effects.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn failures_are_no_answers() {
    on_each("failures", async |store, other_store| {
        let effects = Effects::free();
        let (daemon, other) = (effects.daemon(store), effects.daemon(other_store));
        for (number, daemon) in [(1, &daemon), (2, &other)] {
            assert_eq!(post_to(daemon, "/things/a", "k", "fail").await.status, 502);
            assert_eq!(effects.count(), number);
        }
        for number in [3, 4] {
            let answer = post_to(&daemon, "/things/a", "l", "panic").await;
            assert_eq!(answer.status, 500);
            assert_eq!(effects.count(), number);
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_secret_or_long_is_not_kept_and_not_done_again() {
    on_each("secrets", async |store, other_store| {
        let effects = Effects::free();
        let (daemon, other) = (effects.daemon(store.clone()), effects.daemon(other_store));
        for (number, body) in [(1, "secret"), (2, "long")] {
            let first = post_to(&daemon, "/things/a", body, body).await;
            assert_eq!(first.status, 200);
            for daemon in [&daemon, &other] {
                let again = post_to(daemon, "/things/a", body, body).await;
                assert_eq!(again.status, 409, "{again:?}");
                assert!(again.body.contains("not kept"), "{again:?}");
            }
            assert_eq!(effects.count(), number);
        }
    })
    .await;
}

/// A key, written directly to the store.
fn key(id: &str, attempt: &str) -> IdempotencyKey {
    IdempotencyKey {
        id: id.to_owned(),
        workspace: "default".to_owned(),
        request: "r".to_owned(),
        attempt: attempt.to_owned(),
    }
}

fn answer(status: u16) -> KeptAnswer {
    let content = Some(("[]".to_owned(), vec![1]));
    KeptAnswer { status, content }
}

#[tokio::test]
async fn what_a_daemon_that_died_was_at_is_not_done_again() {
    on_each("died", async |store, other| {
        let (dead, next) = (key("k", "dead"), key("k", "next"));
        assert_eq!(store.begin_key(&dead, 100, 0).await.unwrap(), Begun::Yours);
        let running = Begun::Running {
            request: "r".to_owned(),
        };
        assert_eq!(other.begin_key(&next, 200, 100).await.unwrap(), running);
        store.prolong_key(&dead, 150).await.unwrap();
        assert_eq!(other.begin_key(&next, 200, 150).await.unwrap(), running);
        let abandoned = Begun::Abandoned {
            request: "r".to_owned(),
        };
        let day = millis(KEPT);
        for now in [151, 150 + day] {
            other.prune_keys(now, 100).await.unwrap();
            let begun = other.begin_key(&next, now + 100, now).await.unwrap();
            assert_eq!(begun, abandoned, "{now}");
        }
        // The attempt was alive after all.
        store.answer_key(&dead, &answer(201), 999).await.unwrap();
        let answered = |status| Begun::Answered {
            request: "r".to_owned(),
            answer: answer(status),
        };
        assert_eq!(
            other.begin_key(&next, 400, 301).await.unwrap(),
            answered(201)
        );
        assert_eq!(
            other.begin_key(&next, 2000, 1000).await.unwrap(),
            Begun::Yours
        );
        // No request waits for it at this time.
        store.answer_key(&dead, &answer(202), 9999).await.unwrap();
        store.free_key(&dead).await.unwrap();
        store.prolong_key(&dead, 9999).await.unwrap();
        assert_eq!(store.begin_key(&dead, 3000, 2001).await.unwrap(), abandoned);
        assert_eq!(
            store.begin_key(&dead, 2 * day, 2001 + day).await.unwrap(),
            Begun::Yours
        );
    })
    .await;
}

#[tokio::test]
async fn whoever_asks_again_after_a_daemon_has_died_is_told_and_nothing_is_done() {
    on_each("told", async |store, other_store| {
        let effects = Effects {
            may_act: Arc::new(Semaphore::new(0)),
            ..Effects::free()
        };
        let (dying, other) = (effects.daemon(store.clone()), effects.daemon(other_store));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let asked = runtime.spawn(async move { post_to(&dying, "/things/a", "k", "x").await });
        while effects.come.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // An in-memory database is its one connection. It must not end with the runtime that used it last, so the
        // test waits for it here.
        store.prune_keys(0, 100).await.expect("a store");
        // Aborts the acting task, as a kill would, and waits for its end.
        let ending = tokio::task::spawn_blocking(move || drop(runtime));
        ending.await.expect("it ends");
        if let Ok(told) = asked.await {
            assert_eq!(
                told.status, 409,
                "nobody is told that it was done: {told:?}"
            );
        }
        effects.may_act.add_permits(10);
        effects
            .time
            .fetch_add(millis(super::LEASE) + 1, Ordering::SeqCst);
        for _ in 0..2 {
            let told = post_to(&other, "/things/a", "k", "x").await;
            assert_eq!(told.status, 409, "{told:?}");
            assert!(told.body.contains("not done again"), "{told:?}");
        }
        let another = post_to(&other, "/things/a", "k", "y").await;
        assert_eq!(another.status, 422, "{another:?}");
        assert_eq!(effects.count(), 0);
        assert_eq!(post_to(&other, "/things/a", "l", "x").await.status, 201);
    })
    .await;
}

#[tokio::test]
async fn answers_are_kept_for_a_day_and_the_oldest_make_room() {
    on_each("kept", async |store, _| {
        let effects = Effects::free();
        let daemon = effects.daemon(store.clone());
        post_to(&daemon, "/things/a", "k", "x").await;
        effects.time.fetch_add(millis(KEPT), Ordering::SeqCst);
        post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!(effects.count(), 1);
        effects.time.fetch_add(1, Ordering::SeqCst);
        post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!(effects.count(), 2);

        let far = 3_000_000_000_000;
        for (id, until) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            let key = key(id, "attempt");
            store.begin_key(&key, far, 0).await.unwrap();
            store
                .answer_key(&key, &answer(200), far + until)
                .await
                .unwrap();
        }
        store
            .begin_key(&key("at-it", "attempt"), far, 0)
            .await
            .unwrap();
        store.prune_keys(0, 2).await.unwrap();
        let mut free = Vec::new();
        for id in ["a", "b", "c", "d", "at-it"] {
            let begun = store.begin_key(&key(id, "other"), far, 0).await.unwrap();
            free.extend((begun == Begun::Yours).then_some(id));
        }
        assert_eq!(free, ["a", "b"]);
        store.prune_keys(far + 4, 100).await.unwrap();
        let begun = store.begin_key(&key("d", "other"), far, 0).await.unwrap();
        assert!(matches!(begun, Begun::Answered { .. }), "{begun:?}");
    })
    .await;
}

#[tokio::test]
async fn what_was_begun_is_done_though_whoever_asked_has_gone() {
    on_each("gone", async |store, other_store| {
        let effects = Effects {
            may_act: Arc::new(Semaphore::new(0)),
            ..Effects::free()
        };
        let (daemon, other) = (effects.daemon(store), effects.daemon(other_store));
        let mut asking = Box::pin(post_to(&daemon, "/things/a", "k", "x"));
        // Until the request reaches the route, which waits.
        while effects.come.load(Ordering::SeqCst) == 0 {
            assert!(futures_util::poll!(asking.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(asking);
        effects.may_act.add_permits(10);
        let answer = post_to(&other, "/things/a", "k", "x").await;
        assert_eq!((answer.status, answer.body.as_str()), (201, "1 x"));
        assert_eq!(effects.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn keys_that_are_none_are_refused() {
    let effects = Effects::free();
    let daemon = effects.daemon(Store::in_memory());
    for key in ["", &"k".repeat(256), "gr\u{fc}n", "a\tb"] {
        let refused = post_to(&daemon, "/things/a", key, "x").await;
        assert_eq!(refused.status, 400, "{key}: {refused:?}");
    }
    assert_eq!(effects.count(), 0);
    for number in 1..3 {
        let request = Request::post("/things/a")
            .body(Body::empty())
            .expect("a request");
        let answer = daemon.clone().oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), 201);
        assert_eq!(effects.count(), number, "without a key nothing is kept");
    }
}
