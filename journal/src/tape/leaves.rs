//! The texts of a JSON document, and what tells which of them go on in the next event of a stream.

use std::hash::{DefaultHasher, Hash, Hasher};

use squall_dialects::json::{Kind, Value};

/// Shows every text, with a number for where it stands. Texts of two events have the same number if their
/// pointers are the same, and so are the `index`es and the `type`s beside them: a model's deltas are told
/// apart by these.
pub(super) fn each<'d>(root: Value<'d>, see: &mut impl FnMut(u64, Value<'d>)) {
    below(root, DefaultHasher::new(), see);
}

fn below<'d>(value: Value<'d>, mut place: DefaultHasher, see: &mut impl FnMut(u64, Value<'d>)) {
    match value.kind() {
        Kind::String => see(place.finish(), value),
        Kind::Object => {
            for member in value.members().filter(tells_apart) {
                (member.key(), member.raw()).hash(&mut place);
            }
            for member in value.members() {
                let mut place = place.clone();
                member.key().hash(&mut place);
                below(member, place, see);
            }
        }
        Kind::Array => {
            for (number, item) in value.items().enumerate() {
                let mut place = place.clone();
                number.hash(&mut place);
                below(item, place, see);
            }
        }
        Kind::Number | Kind::True | Kind::False | Kind::Null => {}
    }
}

fn tells_apart(member: &Value<'_>) -> bool {
    let Some(key) = member.key() else {
        return false;
    };
    match member.kind() {
        Kind::Number => key == "index" || key.ends_with("_index"),
        Kind::String => key == "type",
        Kind::Object | Kind::Array | Kind::True | Kind::False | Kind::Null => false,
    }
}
