//! `context_attacks`: known words that cannot be carried out yet. They are refused where they
//! stand, never accepted in silence.

use super::located::{At, Tree};
use super::modes::CONTEXT_ATTACKS;
use super::reader::Reader;
use crate::error::{Position, allowed, words};

/// Refuses every attack of a list, or of a map from type to parameters; one that is switched off
/// does no harm.
pub(crate) fn refuse(attacks: &At<Tree>, reader: &mut Reader) {
    reader.below("context_attacks", |reader| match &attacks.value {
        Tree::Null => {}
        Tree::List(items) => {
            for (index, item) in items.iter().enumerate() {
                reader.below(&index.to_string(), |reader| refuse_item(item, reader));
            }
        }
        Tree::Map(members) => {
            for (name, parameters) in members {
                let off = member(&parameters.value, "enabled")
                    .is_some_and(|enabled| matches!(&enabled.value, Tree::Scalar { text, .. } if text == "false"));
                if !off || !CONTEXT_ATTACKS.contains(&name.value.as_str()) {
                    refuse_type(&name.value, name.position, &name.value, reader);
                }
            }
        }
        Tree::Scalar { .. } => {
            let message = "allowed is a list of attacks, or a map from type to parameters";
            reader.error("", attacks.position, message);
        }
    });
}

fn refuse_item(item: &At<Tree>, reader: &mut Reader) {
    if let Some(At {
        value: Tree::Scalar { text: kind, .. },
        position,
    }) = member(&item.value, "type")
    {
        refuse_type(kind, *position, "type", reader);
    } else {
        let allowed = words(CONTEXT_ATTACKS.iter().copied());
        reader.error(
            "",
            item.position,
            format!("an attack needs `type`, one of {allowed}"),
        );
    }
}

fn refuse_type(kind: &str, position: Position, field: &str, reader: &mut Reader) {
    let message = if CONTEXT_ATTACKS.contains(&kind) {
        format!("context attack `{kind}`: this version of Squall cannot inject it yet; take it out")
    } else {
        format!(
            "unknown context attack `{kind}`{}",
            allowed(kind, CONTEXT_ATTACKS.iter().copied())
        )
    };
    reader.error(field, position, message);
}

fn member<'a>(tree: &'a Tree, name: &str) -> Option<&'a At<Tree>> {
    match tree {
        Tree::Map(members) => members
            .iter()
            .find(|(key, _)| key.value == name)
            .map(|(_, value)| value),
        Tree::Null | Tree::Scalar { .. } | Tree::List(_) => None,
    }
}
