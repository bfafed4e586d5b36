//! The shop: a small inventory service with a page, for `squall explore`.
//!
//! Its expedite path is wrong on purpose: it sells what is not in stock. Its slow mode is above its limit on purpose.
//! `--repaired` repairs both.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Pieces in stock after a reset.
const INVENTORY: i64 = 1_000;

/// Purchases that take longer raise an alert.
const LIMIT_MS: u64 = 50;

/// Latency of a purchase in slow mode: of the wrong shop, and of the repaired one.
const SLOW_MS: [u64; 2] = [80, 20];

/// Lines of the log; the oldest are dropped.
const LINES: usize = 40;

/// Largest quantity of one request.
const MOST: i64 = 10_000;

const LATENCY: &str = "x-request-latency-ms";

/// The page loads nothing from elsewhere and runs nothing but its own script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("shop/page.html");
const SCRIPT: &str = include_str!("shop/page.js");
const STYLE: &str = include_str!("shop/page.css");

/// The shop's suite, for the port and the program that starts it.
pub(crate) fn suite(port: u16, program: &str) -> String {
    let program = Value::from(program).to_string();
    include_str!("shop/suite.yaml")
        .replace("7080", &port.to_string())
        .replace("[squall,", &format!("[{program},"))
}

/// The state of the shop.
#[derive(Debug, Default)]
struct Shop {
    inventory: i64,
    sold: i64,
    slow: bool,
    /// Latency of the last purchase.
    latency_ms: u64,
    log: VecDeque<String>,
    /// Number of log lines since the start.
    lines: u64,
    repaired: bool,
}

type SharedShop = Arc<Mutex<Shop>>;

/// Binds the shop to a port of loopback; 0 takes a free one.
pub(crate) async fn listen(port: u16) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves the shop for ever.
pub(crate) async fn serve(listener: TcpListener, repaired: bool) -> std::io::Result<()> {
    let mut shop = Shop {
        repaired,
        ..Shop::default()
    };
    shop.reset();
    let asset = |media_type: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, media_type)], text) })
    };
    let router = Router::new()
        .route("/", get(page))
        .route("/page.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/page.css", asset("text/css; charset=utf-8", STYLE))
        .route(
            "/state",
            get(async |State(shop): State<SharedShop>| lock(&shop).answer()),
        )
        .route("/diagnostics", get(diagnostics))
        .route("/reset", post(reset))
        .route("/restock", post(restock))
        .route("/drain", post(drain))
        .route("/purchase", post(purchase))
        .route("/mode", post(mode))
        .with_state(Arc::new(Mutex::new(shop)));
    axum::serve(listener, router).await
}

fn lock(shop: &SharedShop) -> MutexGuard<'_, Shop> {
    shop.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shop {
    fn reset(&mut self) {
        *self = Self {
            inventory: INVENTORY,
            repaired: self.repaired,
            lines: self.lines,
            log: std::mem::take(&mut self.log),
            ..Self::default()
        };
    }

    /// Alerts by name, each with its text.
    fn alerts(&self) -> Vec<(&'static str, String)> {
        let oversold = (self.inventory < 0).then(|| {
            let missing = -self.inventory;
            (
                "oversold",
                format!("Oversold: {missing} more pieces are sold than were in stock."),
            )
        });
        let slow = (self.latency_ms > LIMIT_MS).then(|| {
            let latency = self.latency_ms;
            (
                "slow",
                format!("Slow: the last purchase took {latency} ms, the limit is {LIMIT_MS} ms."),
            )
        });
        oversold.into_iter().chain(slow).collect()
    }

    fn mode(&self) -> &'static str {
        if self.slow { "slow" } else { "normal" }
    }

    fn note(&mut self, text: &str) {
        self.lines += 1;
        self.log.push_back(format!("{} {text}", self.lines));
        if self.log.len() > LINES {
            self.log.pop_front();
        }
    }

    fn note_stock(&mut self, text: &str) {
        let inventory = self.inventory;
        self.note(&format!("{text}, {inventory} in stock"));
    }

    fn state(&self) -> Value {
        let alerts: Vec<_> = self.alerts().into_iter().map(|(name, _)| name).collect();
        json!({ "inventory": self.inventory, "mode": self.mode(), "alerts": alerts })
    }

    fn answer(&self) -> Response {
        answer(StatusCode::OK, 0, &self.state())
    }
}

/// A JSON response with the latency that the shop simulated.
fn answer(status: StatusCode, latency_ms: u64, document: &Value) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE.as_str(),
            HeaderValue::from_static("application/json"),
        ),
        (LATENCY, HeaderValue::from(latency_ms)),
    ];
    (status, headers, format!("{document:#}\n")).into_response()
}

fn invalid(wanted: &str) -> Response {
    answer(
        StatusCode::UNPROCESSABLE_ENTITY,
        0,
        &json!({ "error": wanted }),
    )
}

async fn diagnostics(State(shop): State<SharedShop>) -> Response {
    let shop = lock(&shop);
    answer(
        StatusCode::OK,
        0,
        &json!({
            "dropped_lines": shop.lines - shop.log.len() as u64,
            "last_latency_ms": shop.latency_ms,
            "latency_limit_ms": LIMIT_MS,
            "log": shop.log,
            "sold": shop.sold,
        }),
    )
}

async fn reset(State(shop): State<SharedShop>) -> Response {
    let mut shop = lock(&shop);
    shop.reset();
    shop.note("reset");
    shop.answer()
}

/// The quantity of a request.
fn quantity(body: &Value) -> Option<i64> {
    body["quantity"]
        .as_i64()
        .filter(|quantity| (1..=MOST).contains(quantity))
}

const QUANTITY: &str = "`quantity` is a whole number from 1 to 10000";

async fn restock(State(shop): State<SharedShop>, Json(body): Json<Value>) -> Response {
    let Some(quantity) = quantity(&body) else {
        return invalid(QUANTITY);
    };
    let mut shop = lock(&shop);
    shop.inventory = (shop.inventory + quantity).min(INVENTORY);
    shop.note_stock(&format!("restock {quantity}"));
    shop.answer()
}

async fn drain(State(shop): State<SharedShop>) -> Response {
    let mut shop = lock(&shop);
    shop.inventory = shop.inventory.min(0);
    shop.note("drain: the stock is empty");
    shop.answer()
}

async fn mode(State(shop): State<SharedShop>, Json(body): Json<Value>) -> Response {
    let slow = match body["mode"].as_str() {
        Some("slow") => true,
        Some("normal") => false,
        _ => return invalid("`mode` is `normal` or `slow`"),
    };
    let mut shop = lock(&shop);
    shop.slow = slow;
    let mode = shop.mode();
    shop.note(&format!("mode {mode}"));
    shop.answer()
}

async fn purchase(State(shop): State<SharedShop>, Json(body): Json<Value>) -> Response {
    let Some(quantity) = quantity(&body) else {
        return invalid(QUANTITY);
    };
    let expedite = body["expedite"].as_bool().unwrap_or_default();
    let latency_ms = {
        let shop = lock(&shop);
        let slow = SLOW_MS[usize::from(shop.repaired)];
        if shop.slow { slow } else { 0 }
    };
    tokio::time::sleep(Duration::from_millis(latency_ms)).await;
    let mut shop = lock(&shop);
    shop.latency_ms = latency_ms;
    // Wrong on purpose: an expedited order takes its pieces without a look at the stock.
    let checks_stock = !expedite || shop.repaired;
    let path = if expedite { " expedited" } else { "" };
    if checks_stock && quantity > shop.inventory {
        shop.note_stock(&format!("purchase {quantity}{path}: rejected"));
        let error = json!({ "error": "not enough in stock", "inventory": shop.inventory });
        return answer(StatusCode::CONFLICT, latency_ms, &error);
    }
    shop.inventory -= quantity;
    shop.sold += quantity;
    shop.note_stock(&format!("purchase {quantity}{path}: sold"));
    answer(StatusCode::OK, latency_ms, &shop.state())
}

/// The page. Its script fetches it again, and takes over the parts that changed. All texts are the shop's own.
async fn page(State(shop): State<SharedShop>) -> Response {
    let shop = lock(&shop);
    let alerts = shop.alerts().into_iter();
    let alerts =
        alerts.map(|(name, text)| format!("<p class=\"alert\" data-alert=\"{name}\">{text}</p>"));
    let log = shop.log.iter().rev().map(|line| format!("<li>{line}</li>"));
    let page = PAGE
        .replace("{inventory}", &shop.inventory.to_string())
        .replace("{sold}", &shop.sold.to_string())
        .replace("{mode}", shop.mode())
        .replace("{latency}", &shop.latency_ms.to_string())
        .replace("{alerts}", &alerts.collect::<String>())
        .replace("{log}", &log.collect::<String>());
    (
        [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-store"),
        ],
        Html(page),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;

    #[test]
    fn the_suite_of_the_shop_is_valid() {
        let suite = squall_harness::suite::parse(
            "shop.yaml",
            &suite(1234, "/a b/squall"),
            Variables::Refused,
        );
        let suite = suite.expect("a valid suite");
        assert!(suite.notes.is_empty(), "{:#?}", suite.notes);
        let explore = suite.explore.expect("an exploration");
        assert_eq!(explore.base_url, "http://127.0.0.1:1234");
        assert_eq!(
            explore.start.expect("a start").command[..2],
            ["/a b/squall", "demo"]
        );
        assert_eq!(explore.actions.len(), 4);
    }

    #[test]
    fn the_log_is_bounded() {
        let mut shop = Shop::default();
        for _ in 0..100 {
            shop.note("x");
        }
        assert_eq!((shop.log.len(), shop.log[0].as_str()), (LINES, "61 x"));
    }
}
