//! The demo's two tools: a flight search and a booking service.

use axum::Json;
use axum::http::StatusCode;
use serde_json::{Value, json};

/// `GET /search`: always the same three flights.
pub(super) async fn search() -> Json<Value> {
    Json(json!({ "flights": [
        { "flight": "SK4711", "departs": "07:40", "price_eur": 112 },
        { "flight": "DY1873", "departs": "13:05", "price_eur": 96 },
        { "flight": "LH865", "departs": "18:20", "price_eur": 149 },
    ]}))
}

/// `POST /bookings`: books a flight. It can book the same one twice, as most such services do without an
/// idempotency key.
pub(super) async fn book(Json(booking): Json<Value>) -> (StatusCode, Json<Value>) {
    match booking["flight"].as_str() {
        // The confirmation depends on the flight alone, so that runs can be compared.
        Some(flight) => (
            StatusCode::CREATED,
            Json(
                json!({ "flight": flight, "confirmation": format!("R-{}", flight.to_lowercase()) }),
            ),
        ),
        None => (
            StatusCode::UNPROCESSABLE_ENTITY,
            Json(json!({ "error": "which `flight`?" })),
        ),
    }
}
