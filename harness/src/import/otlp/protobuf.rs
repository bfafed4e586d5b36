//! Requests of OTLP in protobuf, as the JSON that OTLP defines for them. A table has the messages; other fields are
//! skipped.

use serde_json::{Map, Value, json};

/// The value of a field.
#[derive(Clone, Copy)]
enum Field {
    /// A message of the table.
    One(&'static [FieldRow]),
    /// Several.
    Many(&'static [FieldRow]),
    Text,
    Hex,
    Base64,
    Number,
    Flag,
    Double,
    /// An `AnyValue`, which may have others in it.
    Any,
    /// Several.
    Anys,
    /// Several pairs of a name and an `AnyValue`.
    Pairs,
}

/// Number and name of a field.
type FieldRow = (u64, &'static str, Field);

const REQUEST: &[FieldRow] = &[(1, "resourceSpans", Field::Many(RESOURCE_SPANS))];
const RESOURCE_SPANS: &[FieldRow] = &[(2, "scopeSpans", Field::Many(SCOPE_SPANS))];
const SCOPE_SPANS: &[FieldRow] = &[(2, "spans", Field::Many(SPAN))];
const SPAN: &[FieldRow] = &[
    (1, "traceId", Field::Hex),
    (2, "spanId", Field::Hex),
    (4, "parentSpanId", Field::Hex),
    (5, "name", Field::Text),
    (7, "startTimeUnixNano", Field::Number),
    (8, "endTimeUnixNano", Field::Number),
    (9, "attributes", Field::Many(KEY_VALUE)),
    (11, "events", Field::Many(EVENT)),
    (15, "status", Field::One(STATUS)),
];
const EVENT: &[FieldRow] = &[
    (2, "name", Field::Text),
    (3, "attributes", Field::Many(KEY_VALUE)),
];
const STATUS: &[FieldRow] = &[(2, "message", Field::Text), (3, "code", Field::Number)];
const KEY_VALUE: &[FieldRow] = &[(1, "key", Field::Text), (2, "value", Field::Any)];
const ANY: &[FieldRow] = &[
    (1, "stringValue", Field::Text),
    (2, "boolValue", Field::Flag),
    (3, "intValue", Field::Number),
    (4, "doubleValue", Field::Double),
    (5, "arrayValue", Field::One(ARRAY)),
    (6, "kvlistValue", Field::One(LIST)),
    (7, "bytesValue", Field::Base64),
];
const ARRAY: &[FieldRow] = &[(1, "values", Field::Anys)];
const LIST: &[FieldRow] = &[(1, "values", Field::Pairs)];

/// Deepest nesting of messages.
const DEEPEST: usize = 40;

/// Reads an `ExportTraceServiceRequest`.
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    let message =
        message(bytes, REQUEST, DEEPEST).ok_or("it is neither JSON nor protobuf of OTLP")?;
    Ok(message)
}

/// An `ExportTraceServiceResponse` with `partial_success`.
pub(super) fn partial_success(rejected: u64, why: &str) -> Vec<u8> {
    let mut partial = vec![0x08];
    put_varint(&mut partial, rejected);
    partial.push(0x12);
    put_varint(&mut partial, why.len() as u64);
    partial.extend_from_slice(why.as_bytes());
    let mut response = vec![0x0a];
    put_varint(&mut response, partial.len() as u64);
    response.extend_from_slice(&partial);
    response
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while let (low, rest) = (number & 0x7f, number >> 7)
        && rest > 0
    {
        out.push(u8::try_from(low).unwrap_or(0) | 0x80);
        number = rest;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

/// A value on the wire.
enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn message(mut bytes: &[u8], rows: &'static [FieldRow], deep: usize) -> Option<Value> {
    let deep = deep.checked_sub(1)?;
    let mut members = Map::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => Wire::Number(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Wire::Bytes(take(&mut bytes, length)?)
            }
            5 => Wire::Number(u64::from(u32::from_le_bytes(
                take(&mut bytes, 4)?.try_into().ok()?,
            ))),
            _ => return None,
        };
        let Some((_, name, field)) = rows.iter().find(|(number, ..)| *number == tag >> 3) else {
            continue;
        };
        let value = value(*field, &wire, deep)?;
        if matches!(field, Field::Many(_) | Field::Anys | Field::Pairs) {
            let list = members.entry(*name).or_insert_with(|| json!([]));
            list.as_array_mut()?.push(value);
        } else {
            members.insert((*name).to_owned(), value);
        }
    }
    Some(members.into())
}

fn value(field: Field, wire: &Wire<'_>, deep: usize) -> Option<Value> {
    Some(match (field, wire) {
        (Field::One(rows) | Field::Many(rows), Wire::Bytes(bytes)) => message(bytes, rows, deep)?,
        (Field::Pairs, Wire::Bytes(bytes)) => message(bytes, KEY_VALUE, deep)?,
        (Field::Any | Field::Anys, Wire::Bytes(bytes)) => message(bytes, ANY, deep)?,
        (Field::Text, Wire::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        (Field::Hex, Wire::Bytes(bytes)) => hex(bytes).into(),
        (Field::Base64, Wire::Bytes(bytes)) => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD
                .encode(bytes)
                .into()
        }
        (Field::Number, Wire::Number(number)) => number.cast_signed().into(),
        (Field::Flag, Wire::Number(number)) => (*number != 0).into(),
        (Field::Double, Wire::Number(number)) => f64::from_bits(*number).into(),
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.flatten().collect()
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
