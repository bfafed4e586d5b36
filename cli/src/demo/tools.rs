//! The demo's two tools: a flight search and a booking service.

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use super::service::{Body, json, read_json};

/// `GET /search`: always the same three flights.
pub(crate) async fn search(request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::GET || request.uri().path() != "/search" {
        return json(
            StatusCode::NOT_FOUND,
            &json!({ "error": "try GET /search" }),
        );
    }
    json(
        StatusCode::OK,
        &json!({ "flights": [
            { "flight": "SK4711", "departs": "07:40", "price_eur": 112 },
            { "flight": "DY1873", "departs": "13:05", "price_eur": 96 },
            { "flight": "LH865", "departs": "18:20", "price_eur": 149 },
        ]}),
    )
}

/// `POST /bookings`: books a flight. It can book the same one twice, as most such services do without an
/// idempotency key.
pub(crate) async fn book(request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::POST || request.uri().path() != "/bookings" {
        return json(
            StatusCode::NOT_FOUND,
            &json!({ "error": "try POST /bookings" }),
        );
    }
    match read_json(request).await["flight"].as_str() {
        // The confirmation depends on the flight alone, so that runs can be compared.
        Some(flight) => json(
            StatusCode::CREATED,
            &json!({ "flight": flight, "confirmation": format!("R-{}", flight.to_lowercase()) }),
        ),
        None => json(
            StatusCode::UNPROCESSABLE_ENTITY,
            &json!({ "error": "which `flight`?" }),
        ),
    }
}
