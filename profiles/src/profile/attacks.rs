//! `context_attacks`: a list of rules that name their `type`, or a map from type to what else is
//! said of it.

use super::located::At;
use super::modes;
use super::raw::{RawAttacks, RawRule};
use super::reader::Reader;
use super::rules::{self, Written};
use crate::error::{allowed, words};
use crate::rule::Family;

/// The attacks that are switched on, in the order written. `nothing` stands for an attack of which
/// nothing is said but its type.
pub(crate) fn switched_on<'a>(
    written: &'a At<RawAttacks>,
    nothing: &'a RawRule,
    reader: &mut Reader,
) -> Vec<Written<'a>> {
    reader.below("context_attacks", |reader| match &written.value {
        RawAttacks::List(items) => {
            let items = items.iter().enumerate();
            let items = items.filter_map(|(index, item)| {
                let place = index.to_string();
                reader.below(&place, |reader| of_item(&place, item, reader))
            });
            items.collect()
        }
        RawAttacks::Map(members) => {
            let members = members.iter().filter_map(|(name, member)| {
                let raw = member.value.as_deref().unwrap_or(nothing);
                reader.below(&name.value, |reader| {
                    if let Some(again) = &raw.attack {
                        let message = "the key names the attack already; leave `type` out";
                        reader.error("type", again.position, message);
                    }
                    let place = name.value.clone();
                    of_type(name, "", place, raw, member.position, reader)
                })
            });
            members.collect()
        }
    })
}

fn of_item<'a>(
    place: &str,
    item: &'a At<Box<RawRule>>,
    reader: &mut Reader,
) -> Option<Written<'a>> {
    let raw = &*item.value;
    if let Some(mode) = &raw.mode {
        let message = format!(
            "attacks are told apart by `type`: write `type: {}`",
            mode.value
        );
        reader.error("mode", mode.position, message);
        rules::look_over(raw, reader);
        return None;
    }
    let Some(name) = &raw.attack else {
        let message = format!("an attack needs `type`, one of {}", words(types()));
        reader.error("", item.position, message);
        rules::look_over(raw, reader);
        return None;
    };
    of_type(name, "type", place.to_owned(), raw, item.position, reader)
}

fn of_type<'a>(
    name: &At<String>,
    field: &str,
    place: String,
    raw: &'a RawRule,
    position: crate::error::Position,
    reader: &mut Reader,
) -> Option<Written<'a>> {
    let Some(mode) = modes::find(Family::Context, &name.value) else {
        let message = format!(
            "unknown context attack `{}`{}",
            name.value,
            allowed(&name.value, types())
        );
        reader.error(field, name.position, message);
        rules::look_over(raw, reader);
        return None;
    };
    let off = raw.enabled.as_ref().is_some_and(|on| !on.value.is_set());
    (!off).then_some(Written {
        family: Family::Context,
        place,
        mode: Some(mode),
        raw,
        position,
    })
}

fn types() -> impl Iterator<Item = &'static str> + Clone {
    modes::of_family(Family::Context).map(|mode| mode.name)
}
