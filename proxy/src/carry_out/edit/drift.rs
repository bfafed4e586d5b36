//! Fields of JSON answers that change.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use http::{HeaderMap, Response};
use squall_dialects::json::{Document, Edits, Kind, Value, quote};
use squall_profiles::fault::{DriftKind, SchemaDrift};

use super::plain::Plain;
use super::{correct_length, drop_digests};
use crate::carry_out::body::AgentBody;
use crate::carry_out::codec::Coding;
use crate::carry_out::flush::Breaking;
use crate::carry_out::whole::{Collected, Lease, collect};
use crate::carry_out::{Context, Report};

pub(super) async fn apply(
    drift: &SchemaDrift,
    response: Response<AgentBody>,
    mut report: Report,
    context: &Context,
) -> Response<AgentBody> {
    let (mut head, body) = response.into_parts();
    let coding = match Coding::of(&head.headers) {
        Ok(coding) => coding,
        Err(why) => {
            report.bypassed(why.to_string());
            return Response::from_parts(head, body);
        }
    };
    let mut whole = match collect(body, &context.inspect).await {
        Collected::Whole(whole) => whole,
        Collected::Partly(rejoined, why) => {
            report.bypassed(why.to_string());
            let body = AgentBody::boxed(Breaking::new(rejoined, context.agent.clone()));
            return Response::from_parts(head, body);
        }
    };
    let encoded = whole.bytes();
    let body = match drifted(
        drift,
        &encoded,
        coding,
        &mut whole.lease,
        context.inspect.limit(),
    ) {
        Ok(edited) => {
            report.applied();
            set_body(&mut head.headers, edited.len());
            AgentBody::boxed(whole.replaced_by(edited))
        }
        Err(why) => {
            report.bypassed(why);
            AgentBody::boxed(whole.unchanged())
        }
    };
    Response::from_parts(head, body)
}

fn set_body(headers: &mut HeaderMap, length: usize) {
    drop_digests(headers);
    correct_length(headers, length as u64);
}

/// The body with the drift, in its coding; or why there is none.
fn drifted(
    drift: &SchemaDrift,
    body: &Bytes,
    coding: Option<Coding>,
    lease: &mut Lease,
    limit: u64,
) -> Result<Bytes, String> {
    let plain = Plain::of(body, coding, lease, limit)?;
    let json = edited(drift, &plain.bytes)?;
    match plain.encoder {
        None => Ok(json.into()),
        Some(encoder) => encoder
            .whole(&json)
            .map(Bytes::from)
            .map_err(|error| format!("the body cannot be compressed again: {error}")),
    }
}

/// The JSON with one field changed wherever it occurs: a field that drifts does so in every
/// record.
fn edited(drift: &SchemaDrift, json: &[u8]) -> Result<Vec<u8>, String> {
    let document = Document::parse(json).map_err(|why| format!("the body is {why}"))?;
    let members = members(&document);
    let name = match &drift.field {
        Some(name) => Cow::Borrowed(name.as_str()),
        None => chosen(&members, drift.choice).ok_or("the JSON has no fields")?,
    };
    let mut edits = Edits::new(&document);
    for member in members
        .iter()
        .filter(|member| member.key().as_ref() == Some(&name))
    {
        change(&mut edits, *member, drift.kind, &name);
    }
    if edits.is_empty() {
        let occurs = members
            .iter()
            .any(|member| member.key().as_ref() == Some(&name));
        return Err(if occurs {
            format!("the field `{name}` is null already")
        } else {
            format!("the JSON has no field `{name}`")
        });
    }
    Ok(edits.apply())
}

fn change(edits: &mut Edits<'_>, member: Value<'_>, kind: DriftKind, name: &str) {
    match kind {
        DriftKind::Rename => edits.rename(member.id(), &format!("{name}_v2")),
        DriftKind::Drop => edits.remove(member.id()),
        DriftKind::Null if member.is_null() => {}
        DriftKind::Null => edits.replace(member.id(), "null"),
        DriftKind::Retype => edits.replace(member.id(), retyped(member)),
    }
}

/// The value as another type: its text as a string; a string as the only item of a list.
fn retyped(value: Value<'_>) -> String {
    match value.kind() {
        Kind::String => format!("[{}]", value.raw()),
        Kind::Number | Kind::True | Kind::False | Kind::Null | Kind::Object | Kind::Array => {
            quote(value.raw())
        }
    }
}

/// Every member at any depth, in the order of the text.
fn members<'d>(document: &'d Document<'d>) -> Vec<Value<'d>> {
    let mut found = Vec::new();
    let mut open = vec![document.root()];
    while let Some(value) = open.pop() {
        if value.key().is_some() {
            found.push(value);
        }
        let first = open.len();
        open.extend(value.members());
        open.extend(value.items());
        open[first..].reverse();
    }
    found
}

/// One of the names that occur, each as likely as the other, however often it occurs.
fn chosen<'d>(members: &[Value<'d>], choice: u64) -> Option<Cow<'d, str>> {
    let mut seen = BTreeSet::new();
    let mut names: Vec<_> = members.iter().filter_map(|member| member.key()).collect();
    names.retain(|name| seen.insert(name.clone()));
    let count = u64::try_from(names.len()).ok().filter(|count| *count > 0)?;
    names.into_iter().nth(usize::try_from(choice % count).ok()?)
}
