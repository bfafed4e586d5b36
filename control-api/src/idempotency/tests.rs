//! Tests of the layer over a route that counts its effects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router, middleware};
use http::header::{CACHE_CONTROL, LOCATION};
use http::{Request, StatusCode};
use squall_tests::postgres::Postgres;
use tempfile::TempDir;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

use super::{Clock, KEY, Keys, LIFETIME, PATIENCE, millis, once};
use crate::access::Needs;
use crate::store::{IdempotencyKey, KeyState, Store, StorePlace, StoredResponse};

/// The route's effects, and the time.
#[derive(Clone)]
struct Effects {
    count: Arc<AtomicU64>,
    time: Arc<AtomicU64>,
}

impl Effects {
    fn new() -> Self {
        Self {
            count: Arc::default(),
            time: Arc::new(AtomicU64::new(1_800_000_000_000)),
        }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// A daemon on `store`.
    fn daemon(&self, store: Store) -> Router {
        self.impatient(store, PATIENCE)
    }

    fn impatient(&self, store: Store, patience: Duration) -> Router {
        let time = Arc::clone(&self.time);
        let clock: Clock = Arc::new(move || time.load(Ordering::SeqCst));
        let keys = Keys::new(store, clock, patience);
        Router::new()
            .route("/things/{name}", post(act).get(act))
            .layer(CatchPanicLayer::new())
            .layer(middleware::from_fn_with_state(keys, once))
            .layer(Extension(Needs::Nothing))
            .with_state(self.clone())
    }
}

async fn act(State(effects): State<Effects>, body: String) -> Response {
    let number = effects.count.fetch_add(1, Ordering::SeqCst) + 1;
    match body.as_str() {
        "fail" => StatusCode::BAD_GATEWAY.into_response(),
        "panic" => panic!("as requested"),
        "secret" => ([(CACHE_CONTROL, "no-store")], "squall_secret").into_response(),
        "long" => "x".repeat(100_000).into_response(),
        _ => {
            let place = [(LOCATION, format!("/things/{number}"))];
            (StatusCode::CREATED, place, format!("{number} {body}")).into_response()
        }
    }
}

/// Status, `Location` and body.
type Answer = (u16, String, String);

async fn send(daemon: &Router, method: &str, path: &str, key: &str, body: &'static str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(KEY, key)
        .body(Body::from(body))
        .expect("a request");
    let response = daemon.clone().oneshot(request).await.expect("an answer");
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let place = head.headers.get(LOCATION);
    let place = place.map_or("", |place| place.to_str().expect("text"));
    let body = String::from_utf8(body.into()).expect("text");
    (head.status.as_u16(), place.to_owned(), body)
}

async fn post_to(daemon: &Router, path: &str, key: &str, body: &'static str) -> Answer {
    send(daemon, "POST", path, key, body).await
}

/// Two daemons with one effect: on one PostgreSQL, or two routers on one store.
async fn on_each<F: Future<Output = ()>>(name: &str, check: impl Fn(Store, Store) -> F) {
    let home = TempDir::new().expect("a directory");
    let store = Store::open(StorePlace::in_home(home.path())).await;
    let store = store.expect("a store");
    check(store.clone(), store).await;
    let store = Store::in_memory();
    check(store.clone(), store).await;
    let server = Postgres::start();
    server.database(name);
    let place = StorePlace::parse(&server.url(name), home.path(), home.path()).expect("a place");
    let one = Store::open(place.clone()).await.expect("a store");
    let other = Store::open(place).await.expect("a store");
    check(one, other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_response_is_repeated_and_only_for_the_same_request() {
    on_each("again", async |store, other_store| {
        let effects = Effects::new();
        let (daemon, other) = (effects.daemon(store), effects.daemon(other_store));
        let first = post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!((first.0, first.1.as_str()), (201, "/things/1"));
        assert_eq!(post_to(&daemon, "/things/a", "k", "x").await, first);
        assert_eq!(post_to(&other, "/things/a", "k", "x").await, first);
        for (path, body) in [("/things/a", "y"), ("/things/b", "x"), ("/things/a?q", "x")] {
            let rejected = post_to(&other, path, "k", body).await;
            assert_eq!(rejected.0, 422, "{path} {body}: {rejected:?}");
            assert!(rejected.2.contains("idempotency-key"), "{rejected:?}");
        }
        assert_eq!(effects.count(), 1);
        // Failures free the key.
        for (number, body) in [(2, "fail"), (3, "fail"), (4, "panic"), (5, "panic")] {
            let failed = post_to(&daemon, "/things/a", body, body).await;
            assert!(failed.0 >= 500, "{failed:?}");
            assert_eq!(effects.count(), number);
        }
        for (number, body) in [(6, "secret"), (7, "long")] {
            assert_eq!(post_to(&daemon, "/things/a", body, body).await.0, 200);
            for daemon in [&daemon, &other] {
                let again = post_to(daemon, "/things/a", body, body).await;
                assert_eq!(again.0, 409, "{again:?}");
                assert!(again.2.contains("not stored"), "{again:?}");
            }
            assert_eq!(effects.count(), number);
        }
        let sent = (0..50).map(|number| {
            let daemon = [&daemon, &other][number % 2].clone();
            tokio::spawn(async move { post_to(&daemon, "/things/a", "at once", "x").await })
        });
        for one in sent.collect::<Vec<_>>() {
            let answer = one.await.expect("it ends");
            assert_eq!((answer.0, answer.2.as_str()), (201, "8 x"));
        }
        for _ in 0..2 {
            send(&daemon, "GET", "/things/a", "k", "x").await;
        }
        assert_eq!(effects.count(), 10, "a key has no effect on a GET");
    })
    .await;
}

/// A key, written directly to the store.
fn key(id: &str) -> IdempotencyKey {
    IdempotencyKey {
        id: id.to_owned(),
        workspace: "default".to_owned(),
        request: "r".to_owned(),
        attempt: "attempt".to_owned(),
    }
}

#[tokio::test]
async fn responses_are_stored_for_a_day_and_the_oldest_are_deleted() {
    on_each("stored", async |store, _| {
        let effects = Effects::new();
        let daemon = effects.daemon(store.clone());
        post_to(&daemon, "/things/a", "k", "x").await;
        effects.time.fetch_add(millis(LIFETIME), Ordering::SeqCst);
        post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!(effects.count(), 1);
        effects.time.fetch_add(1, Ordering::SeqCst);
        post_to(&daemon, "/things/a", "k", "x").await;
        assert_eq!(effects.count(), 2);

        let far = 3_000_000_000_000;
        let take =
            async |id: &str, now| store.take_key(&key(id), far, now).await.expect("it works");
        for (id, until) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            assert_eq!(take(id, 0).await, KeyState::Taken);
            let content = Some(("[]".to_owned(), vec![1]));
            let response = StoredResponse {
                status: 200,
                content,
            };
            let answered = store.answer_key(&key(id), response, far + until).await;
            answered.expect("it works");
        }
        assert_eq!(take("without response", 0).await, KeyState::Taken);
        store.prune_keys(0, 2).await.expect("it works");
        for (id, is_free) in [
            ("a", true),
            ("b", true),
            ("c", false),
            ("d", false),
            ("without response", false),
        ] {
            assert_eq!(take(id, 0).await == KeyState::Taken, is_free, "{id}");
        }
        store.prune_keys(far + 4, 100).await.expect("it works");
        let held = take("d", 0).await;
        assert!(matches!(held, KeyState::Held(_, Some(_))), "{held:?}");
    })
    .await;
}

#[tokio::test]
async fn a_request_whose_daemon_died_is_not_carried_out_again() {
    let store = Store::in_memory();
    let effects = Effects::new();
    // The row of the dead daemon.
    let other = effects.impatient(store.clone(), Duration::ZERO);
    assert_eq!(post_to(&other, "/things/a", "k", "x").await.0, 201);
    let forget = "UPDATE idempotency_keys SET status = NULL";
    store.execute_for_test(forget).await;
    let rejected = post_to(&other, "/things/a", "k", "x").await;
    assert_eq!(rejected.0, 409, "{rejected:?}");
    assert!(rejected.2.contains("its daemon ended"), "{rejected:?}");
    assert_eq!(post_to(&other, "/things/a", "k", "y").await.0, 422);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn invalid_keys_are_rejected() {
    let effects = Effects::new();
    let daemon = effects.daemon(Store::in_memory());
    for key in ["", &"k".repeat(256), "gr\u{fc}n", "a\tb"] {
        let rejected = post_to(&daemon, "/things/a", key, "x").await;
        assert_eq!(rejected.0, 400, "{key}: {rejected:?}");
    }
    assert_eq!(effects.count(), 0);
}
