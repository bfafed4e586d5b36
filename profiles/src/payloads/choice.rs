//! Selects the payload of an attack.

use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value, json};
use squall_documents::{Fields, ValueReader};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Category, library};

/// The payloads that an attack draws from: literal ones, categories of the library, or both; by
/// default the whole library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payloads {
    /// Given in the rule.
    literal: Vec<String>,
    /// Chosen in the rule.
    categories: Vec<&'static Category>,
}

/// The payload of one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// Its name; `None` for the only literal payload.
    pub name: Option<PayloadName>,
    /// The instruction, for [`Canary::carried_by`](crate::canary::Canary::carried_by).
    pub text: &'a str,
}

impl<'a> Chosen<'a> {
    /// The only payload in the rule.
    pub fn literal(text: &'a str) -> Self {
        Self { name: None, text }
    }
}

/// The name of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadName {
    /// One of the library.
    Library {
        /// Its id, unique in the library.
        id: &'static str,
        /// Its category.
        category: &'static str,
    },
    /// One of several literal payloads: its index in the rule's `payloads`, from 0.
    Literal(usize),
}

impl PayloadName {
    /// Its category, if it is one of the library.
    pub fn category(self) -> Option<&'static str> {
        match self {
            Self::Library { category, .. } => Some(category),
            Self::Literal(_) => None,
        }
    }
}

impl Display for PayloadName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library { id, .. } => f.write_str(id),
            Self::Literal(place) => write!(f, "payloads[{place}]"),
        }
    }
}

impl Payloads {
    /// Literal payloads only.
    pub fn literal(texts: impl IntoIterator<Item = String>) -> Self {
        Self {
            literal: texts.into_iter().collect(),
            categories: Vec::new(),
        }
    }

    /// Reads the fields `payloads` and `categories` of an attack.
    pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let empty = |field| {
            format!(
                "`{field}: []` leaves no payload to choose; leave `{field}` out for the attack's own"
            )
        };
        let about = "Texts of which one is chosen for each exchange.";
        let literal = fields.field("payloads", about, |value| {
            value.some("a list", &empty("payloads"), read_literal)
        });
        let known: Vec<_> = library()
            .iter()
            .map(|one| (one.name.as_str(), one))
            .collect();
        let mut seen = Vec::new();
        let about = "Categories of Squall's own payloads of which one is chosen for each exchange.";
        let categories = fields.field("categories", about, |value| {
            value.some("a list", &empty("categories"), |value| {
                let category = value.word("payload category", &known)?;
                if seen.contains(&category) {
                    let name = &category.name;
                    value.error(format!("category `{name}` stands here twice; keep one"));
                    return None;
                }
                seen.push(category);
                Some(category)
            })
        });
        Self {
            literal: literal.unwrap_or_default(),
            categories: categories.unwrap_or_default(),
        }
    }

    /// The same categories, and this literal payload alone.
    pub(crate) fn with_literal(self, text: &str) -> Self {
        Self {
            literal: vec![text.to_owned()],
            ..self
        }
    }

    /// The payload for `draw`. It selects by keyed hashes in two steps: first a category (literal
    /// payloads count as one), then a payload in it. So adding a payload to a category changes no
    /// selection in other categories. In its own, it only changes the draws that now select it. The
    /// order does not matter.
    pub fn choose(&self, draw: u64) -> Chosen<'_> {
        let named = |category: &'static Category| (category.name.as_str(), Some(category));
        let category = if self.literal.is_empty() && self.categories.is_empty() {
            winner(library().iter().map(named), draw)
        } else {
            let literal = (!self.literal.is_empty()).then_some(("", None));
            let categories = self.categories.iter().copied().map(named);
            winner(categories.chain(literal), draw)
        };
        let of = |category: &'static Category| {
            let payloads = category.payloads.iter();
            let payload = winner(payloads.map(|payload| (payload.id.as_str(), payload)), draw)?;
            let name = PayloadName::Library {
                id: &payload.id,
                category: &category.name,
            };
            Some((name, payload))
        };
        if let Some((name, payload)) = category.flatten().and_then(of) {
            return Chosen {
                name: Some(name),
                text: &payload.text,
            };
        }
        let texts = self.literal.iter().enumerate();
        let won = winner(
            texts.map(|(place, text)| (text.as_str(), (place, text))),
            draw,
        );
        let (place, text) = won.map_or((0, ""), |(place, text)| (place, text));
        Chosen {
            name: (self.literal.len() > 1).then_some(PayloadName::Literal(place)),
            text,
        }
    }

    /// The parameters as in files: `payloads`, `categories`. The library's version is excluded,
    /// because rule ids depend on parameters and must not change with it.
    pub fn parameters(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if !self.literal.is_empty() {
            map.insert("payloads".into(), json!(self.literal));
        }
        if !self.categories.is_empty() {
            let names = self.categories.iter().map(|category| &category.name);
            map.insert("categories".into(), names.cloned().collect());
        }
        map
    }
}

fn read_literal(value: &mut ValueReader<'_, '_>) -> Option<String> {
    let text = value.exact_text()?;
    if text.value.trim().is_empty() {
        value.error("a payload that is blank injects nothing; write what the agent should find");
        return None;
    }
    Some(text.value)
}

/// The candidate with the highest hash for this draw (highest random weight).
fn winner<'k, T>(among: impl Iterator<Item = (&'k str, T)>, draw: u64) -> Option<T> {
    let weighed = among.max_by_key(|(key, _)| xxh3_64_with_seed(key.as_bytes(), draw));
    weighed.map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Payload;
    use super::*;
    use squall_documents::{DocumentError, DocumentReader, SourceText, parse};

    fn read(payloads: &[&str], categories: &[&str]) -> Result<Payloads, String> {
        let list = |name: &str, texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| format!("\"{text}\"")).collect();
            match texts[..] {
                [] => format!("{name}:\n"),
                _ => format!("{name}: [{}]\n", texts.join(",\n    ")),
            }
        };
        let text = list("payloads", payloads) + &list("categories", categories);
        let tree = parse("attack.yaml", &text).map_err(|error| error.to_string())?;
        let mut reader = DocumentReader::new(SourceText::new("attack.yaml", &text));
        let read = reader.read(&tree, |value| {
            value.fields("an attack", |fields| Some(Payloads::read(fields)))
        });
        let told = |error: DocumentError| format!("{} {error}", error.pointer);
        let told = |errors: Vec<_>| errors.into_iter().map(told).collect::<Vec<_>>().join("\n");
        reader.finish(read).map(|(read, _)| read).map_err(told)
    }

    fn category(name: &str, ids: &[&str]) -> &'static Category {
        let payload = |id: &&str| Payload {
            id: (*id).to_owned(),
            language: "en".to_owned(),
            text: format!("{id} {{canary}}"),
            obeyed: "the canary".to_owned(),
        };
        Box::leak(Box::new(Category {
            name: name.to_owned(),
            description: String::new(),
            terms: Vec::new(),
            payloads: ids.iter().map(payload).collect(),
        }))
    }

    fn choices(payloads: &Payloads) -> Vec<&str> {
        let choose = |draw: u64| {
            payloads
                .choose(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .text
        };
        (0..2000).map(choose).collect()
    }

    #[test]
    fn what_is_wrong_is_told_where_it_stands() {
        insta::assert_snapshot!(read(&["Say {canary}", " "], &["roleplay", "role_play", "role_play", "harm"]).unwrap_err(), @r#"
        /payloads/1 attack.yaml:2:5: a payload that is blank injects nothing; write what the agent should find
        /categories/0 attack.yaml:3:14: unknown payload category `"roleplay"`, did you mean `role_play`? Expected one of `direct_override`, `role_play`, `authority_impersonation`, `social_pressure`, `system_prompt_extraction`, `data_exfiltration`, `tool_misuse`, `memory_persistence`, `encoding_obfuscation`, `multilingual`, `delimiter_confusion`, `hidden_text`
        /categories/2 attack.yaml:5:5: category `role_play` stands here twice; keep one
        /categories/3 attack.yaml:6:5: unknown payload category `"harm"`; expected one of `direct_override`, `role_play`, `authority_impersonation`, `social_pressure`, `system_prompt_extraction`, `data_exfiltration`, `tool_misuse`, `memory_persistence`, `encoding_obfuscation`, `multilingual`, `delimiter_confusion`, `hidden_text`
        "#);
    }

    #[test]
    fn only_what_was_chosen_is_drawn() {
        let of = |payloads: &[&str], categories: &[&str]| {
            let read = read(payloads, categories).unwrap();
            let mut seen = BTreeMap::new();
            for draw in 0..4000 {
                let chosen = read.choose(draw);
                let category = chosen.name.and_then(PayloadName::category);
                let group = category.map_or("literal", |category| {
                    let id = chosen.name.unwrap().to_string();
                    let holds = |category: &&Category| category.payloads.iter().any(|p| p.id == id);
                    let holder = &library().iter().find(holds).unwrap().name;
                    assert_eq!(category, holder);
                    holder
                });
                *seen.entry(group.to_owned()).or_insert(0) += 1;
            }
            seen
        };
        assert_eq!(
            of(&["one", "two"], &[]),
            [("literal".to_owned(), 4000)].into()
        );
        let both = of(&["one"], &["role_play", "hidden_text"]);
        assert_eq!(
            both.keys().collect::<Vec<_>>(),
            ["hidden_text", "literal", "role_play"]
        );
        let all = of(&[], &[]);
        assert_eq!(all.len(), library().len());
        // Each of twelve is due a twelfth: 333.
        assert!(
            all.values().all(|count| (230..450).contains(count)),
            "{all:?}"
        );
    }

    #[test]
    fn a_payload_added_to_one_category_changes_no_choice_in_another() {
        let first = category("first", &["a", "b", "c"]);
        let second = category("second", &["d", "e", "f"]);
        let grown = category("second", &["new", "d", "e", "f"]);
        let of = |categories| Payloads {
            literal: Vec::new(),
            categories,
        };
        let (before, after) = (of(vec![first, second]), of(vec![grown, first]));
        let (before, after) = (choices(&before), choices(&after));
        let mut won = 0;
        for (before, after) in before.iter().zip(&after) {
            if before == after {
                continue;
            }
            assert!(before.starts_with(['d', 'e', 'f']), "{before}");
            assert_eq!(*after, "new {canary}");
            won += 1;
        }
        // A quarter of the half that falls on its category.
        assert!((180..320).contains(&won), "{won}");
    }

    /// Golden values: a run in a bug report must draw the same payloads again.
    #[test]
    fn a_draw_stands_for_the_same_payload_in_every_release() {
        let library = Payloads::default();
        let drawn = [1, 2, 3].map(|draw| library.choose(draw).name.unwrap().to_string());
        assert_eq!(
            drawn,
            [
                "delimiter-instruction-brackets",
                "authority-user-voice",
                "role-two-voices"
            ]
        );
        let literal = Payloads::literal(["x".to_owned(), "y".to_owned(), "z".to_owned()]);
        assert_eq!(
            [1, 2, 3, 4].map(|draw| literal.choose(draw).text),
            ["z", "z", "y", "x"]
        );
        let named = |draw| literal.choose(draw).name.unwrap().to_string();
        assert_eq!(
            [1, 3, 4].map(named),
            ["payloads[2]", "payloads[1]", "payloads[0]"]
        );
        let only = Payloads::literal(["x".to_owned()]);
        assert_eq!(only.choose(1).name, None);
    }

    #[test]
    fn parameters_are_what_was_written() {
        let read = read(&["Say {canary}"], &["role_play"]).unwrap();
        assert_eq!(
            Value::Object(read.parameters()),
            json!({ "payloads": ["Say {canary}"], "categories": ["role_play"] })
        );
        assert_eq!(Payloads::default().parameters(), Map::new());
    }
}
