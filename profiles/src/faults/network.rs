//! Faults of the transport, for any exchange.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::delay::{Delay, Place};
use crate::dice::Dice;
use crate::fault::{Slices, Throttle, TlsFailure};
use crate::plan::{Answer, Cut, Ending, Plan, Substitute, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// One way a connection can go wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkFault {
    /// `latency`: the exchange is held back.
    Latency(Delay, Place),
    /// `bandwidth`: bytes pass slowly.
    Bandwidth(Throttle, Direction),
    /// `slicer`: the body arrives in small pieces.
    Slicer(Slices),
    /// `slow_close`: the end of the message is late; default 1000 ms.
    SlowClose(Delay),
    /// `timeout`: held for so long, then closed without an answer; default 30,000 ms.
    Timeout(Delay),
    /// `reset_peer`: the connection is reset once the upstream has answered, or after so many body
    /// bytes.
    ResetPeer {
        /// Encoded body bytes that still reach the agent; `None`: not even the head does.
        after_bytes: Option<u64>,
    },
    /// `limit_data`: the body ends after so many bytes, its framing incomplete.
    LimitData {
        /// Encoded body bytes that still reach the agent.
        bytes: u64,
    },
    /// `refuse`: reset before any answer.
    Refuse,
    /// `dns_failure`: the name cannot be resolved.
    DnsFailure,
    /// `tls_failure`: the handshake fails.
    TlsFailure(TlsFailure),
}

/// Which way bytes pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// To the agent. The default.
    #[default]
    Down,
    /// To the upstream.
    Up,
    /// Both ways, each with a rate of its own.
    Both,
}

const DIRECTIONS: &[(&str, Direction)] = &[
    ("down", Direction::Down),
    ("up", Direction::Up),
    ("both", Direction::Both),
];

const TLS_FAILURES: &[(&str, TlsFailure)] = &[
    ("expired", TlsFailure::Expired),
    ("wrong_host", TlsFailure::WrongHost),
    ("untrusted", TlsFailure::Untrusted),
    ("handshake", TlsFailure::Handshake),
];

impl NetworkFault {
    /// Reads the parameters of `mode`, which is one of this family's.
    pub(crate) fn read(mode: &str, raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(match mode {
            "latency" => {
                if raw.delay_ms.is_none() && raw.jitter_ms.is_none() {
                    return missing(raw, reader, "latency", "delay_ms");
                }
                Self::Latency(
                    Delay::read(raw, reader, Duration::ZERO),
                    Place::read(raw, reader),
                )
            }
            "bandwidth" => {
                let Some(rate) = raw.rate_kbps.as_ref() else {
                    return missing(raw, reader, "bandwidth", "rate_kbps");
                };
                let rate = reader.count("rate_kbps", Some(rate), 1);
                let direction = reader.word("direction", raw.direction.as_ref(), DIRECTIONS);
                let bytes_per_second = rate?.saturating_mul(125);
                Self::Bandwidth(Throttle { bytes_per_second }, direction.unwrap_or_default())
            }
            "slicer" => return read_slicer(raw, reader).map(Self::Slicer),
            "slow_close" => Self::SlowClose(Delay::read(raw, reader, Duration::from_secs(1))),
            "timeout" => Self::Timeout(Delay::read(raw, reader, Duration::from_secs(30))),
            "reset_peer" => Self::ResetPeer {
                after_bytes: reader.count("after_bytes", raw.after_bytes.as_ref(), 0),
            },
            "limit_data" => {
                let Some(bytes) = raw.bytes.as_ref() else {
                    return missing(raw, reader, "limit_data", "bytes");
                };
                Self::LimitData {
                    bytes: reader.count("bytes", Some(bytes), 0)?,
                }
            }
            "refuse" => Self::Refuse,
            "dns_failure" => Self::DnsFailure,
            "tls_failure" => {
                let kind = reader.word("kind", raw.kind.as_ref(), TLS_FAILURES);
                Self::TlsFailure(kind.unwrap_or(TlsFailure::Handshake))
            }
            _ => return None,
        })
    }

    /// Writes this fault into `plan`; an error says why it cannot have its way.
    pub fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<(), String> {
        match self {
            Self::Latency(delay, place) => {
                plan.wait(verdict, *place, delay.draw(dice));
                Ok(())
            }
            Self::Bandwidth(throttle, direction) => {
                let down = matches!(direction, Direction::Down | Direction::Both);
                let up = matches!(direction, Direction::Up | Direction::Both);
                plan.throttle(verdict, *throttle, down, up)
            }
            Self::Slicer(slices) => plan.slice(verdict, *slices),
            Self::SlowClose(delay) => plan.close_slowly(verdict, delay.draw(dice)),
            Self::Timeout(delay) => plan.answer(verdict, Answer::Hold(delay.draw(dice))),
            Self::ResetPeer { after_bytes: None } => plan.substitute(verdict, Substitute::Reset),
            Self::ResetPeer {
                after_bytes: Some(after_bytes),
            } => plan.cut(
                verdict,
                Cut {
                    after_bytes: *after_bytes,
                    ending: Ending::Reset,
                },
            ),
            Self::LimitData { bytes } => plan.cut(
                verdict,
                Cut {
                    after_bytes: *bytes,
                    ending: Ending::Close,
                },
            ),
            Self::Refuse => plan.answer(verdict, Answer::Refuse),
            Self::DnsFailure => plan.answer(verdict, Answer::DnsFailure),
            Self::TlsFailure(kind) => plan.answer(verdict, Answer::Tls(*kind)),
        }
    }

    /// The parameters as they are used, in the words of files.
    pub(crate) fn parameters(&self) -> Map<String, Value> {
        let mut map = Map::new();
        match self {
            Self::Latency(delay, place) => {
                delay.parameters(&mut map);
                place.parameters(&mut map);
            }
            Self::Bandwidth(throttle, direction) => {
                let name = DIRECTIONS.iter().find(|(_, value)| value == direction);
                map.insert("rate_kbps".into(), json!(throttle.bytes_per_second / 125));
                map.insert("direction".into(), json!(name.map(|(name, _)| name)));
            }
            Self::Slicer(slices) => {
                map.insert("average_size".into(), json!(slices.average_size));
                map.insert("size_variation".into(), json!(slices.size_variation));
                let micros = u64::try_from(slices.delay.as_micros()).expect("at most a minute");
                map.insert("delay_us".into(), json!(micros));
            }
            Self::SlowClose(delay) | Self::Timeout(delay) => delay.parameters(&mut map),
            Self::ResetPeer {
                after_bytes: Some(bytes),
            } => {
                map.insert("after_bytes".into(), json!(bytes));
            }
            Self::LimitData { bytes } => {
                map.insert("bytes".into(), json!(bytes));
            }
            Self::TlsFailure(kind) => {
                let name = TLS_FAILURES.iter().find(|(_, value)| value == kind);
                map.insert("kind".into(), json!(name.map(|(name, _)| name)));
            }
            Self::ResetPeer { after_bytes: None } | Self::Refuse | Self::DnsFailure => {}
        }
        map
    }

    /// Whether it ends a connection before there is an exchange: decided at a CONNECT.
    pub fn is_of_the_connection(&self) -> bool {
        matches!(self, Self::Refuse | Self::DnsFailure | Self::TlsFailure(_))
    }

    /// Whether what it does hangs on a draw of its own.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Latency(delay, _) | Self::SlowClose(delay) | Self::Timeout(delay) => {
                delay.is_random()
            }
            Self::Bandwidth(..)
            | Self::Slicer(_)
            | Self::ResetPeer { .. }
            | Self::LimitData { .. }
            | Self::Refuse
            | Self::DnsFailure
            | Self::TlsFailure(_) => false,
        }
    }
}

fn read_slicer(raw: &RawRule, reader: &mut Reader) -> Option<Slices> {
    let Some(average) = raw.average_size.as_ref() else {
        return missing(raw, reader, "slicer", "average_size");
    };
    let average_size = reader.count("average_size", Some(average), 1);
    let variation = raw.size_variation.as_ref();
    let size_variation = reader.count("size_variation", variation, 0).unwrap_or(0);
    let delay = reader
        .micros("delay_us", raw.delay_us.as_ref())
        .unwrap_or_default();
    let average_size = average_size?;
    if let Some(at) = variation.filter(|_| size_variation >= average_size) {
        let message = format!(
            "`size_variation: {size_variation}` is not below `average_size: {average_size}`"
        );
        reader.error("size_variation", at.position, message);
    }
    Some(Slices {
        average_size,
        size_variation,
        delay,
    })
}

/// Notes that a mode lacks a parameter it cannot do without.
fn missing<T>(raw: &RawRule, reader: &mut Reader, mode: &str, parameter: &str) -> Option<T> {
    let position = raw
        .mode
        .as_ref()
        .map(|mode| mode.position)
        .unwrap_or_default();
    reader.error(
        "mode",
        position,
        format!("mode `{mode}` needs `{parameter}`"),
    );
    None
}
