//! Tool calls that are wrong.

use super::words;
use squall_dialects::json::{Document, Edits, JsonKind, Value, quote};

/// A name that none of the tools has but that looks as if one did.
pub(crate) fn unknown(name: &str, tools: &[String], choice: u64) -> String {
    let plural = match name.strip_suffix('s') {
        Some(singular) => singular.to_owned(),
        None => format!("{name}s"),
    };
    let near = [
        format!("{name}_v2"),
        plural,
        format!("{name}_tool"),
        format!("execute_{name}"),
    ];
    let first = usize::try_from(choice % 4).unwrap_or_default();
    let mut candidates = near.iter().cycle().skip(first).take(near.len());
    let free = candidates.find(|candidate| !tools.contains(candidate) && !candidate.is_empty());
    free.cloned().unwrap_or_else(|| format!("{}_v3", near[0]))
}

/// Arguments that are no JSON: one of the ways in which models get it wrong, by the draw, of those
/// that make others of these. There is always one: a fence can stand around anything.
pub(crate) fn malformed(arguments: &str, choice: u64) -> String {
    let text = arguments.trim();
    let fenced = format!("```json\n{text}\n```");
    let ways = [
        cut(text),
        match text.strip_suffix('}') {
            Some(open) if open.len() > 1 => format!("{open},}}"),
            _ => cut(text),
        },
        text.replace('"', "'"),
        format!("// arguments\n{text}"),
        fenced.clone(),
        format!("{text}{text}"),
    ];
    let spoils = |way: &&String| *way != text && Document::parse(way.as_bytes()).is_err();
    let ways: Vec<&str> = ways.iter().filter(spoils).map(String::as_str).collect();
    match ways.len() {
        0 => fenced,
        _ => words::pick(&ways, choice).to_owned(),
    }
}

/// What comes of a model that stops in the middle of its arguments.
fn cut(text: &str) -> String {
    let middle = text.len().div_ceil(2);
    let end = (0..=middle).rev().find(|end| text.is_char_boundary(*end));
    let kept = &text[..end.unwrap_or_default()];
    if Document::parse(kept.as_bytes()).is_err() && !kept.is_empty() {
        kept.to_owned()
    } else {
        "{".to_owned()
    }
}

/// Arguments that are JSON, but not those that the tool asks for: one of them missing, of another
/// type, or under another name, by the draw. An error says why there are none.
pub(crate) fn wrong(arguments: &str, choice: u64) -> Result<String, String> {
    let document = Document::parse(arguments.as_bytes())
        .map_err(|_| "the tool call's arguments are no JSON".to_owned())?;
    let root = document.root();
    if root.kind() != JsonKind::Object {
        return Err("the tool call's arguments are no JSON object".to_owned());
    }
    let members: Vec<Value<'_>> = root.members().collect();
    let Ok(count) = u64::try_from(members.len()) else {
        return Err("the tool call has too many arguments".to_owned());
    };
    if count == 0 {
        return Ok(r#"{"input":null}"#.to_owned());
    }
    let at = usize::try_from((choice / 3) % count).unwrap_or_default();
    let member = members[at];
    let mut edits = Edits::new(&document);
    match choice % 3 {
        0 => edits.remove(member.id()),
        1 => edits.replace(member.id(), of_another_type(member)),
        _ => {
            let name = member.key().unwrap_or_default();
            edits.rename(member.id(), &misspelt(&name));
        }
    }
    String::from_utf8(edits.apply()).map_err(|_| "the tool call's arguments are no text".to_owned())
}

/// Another way to write a name: camel case for snake case and the reverse, else with a prefix.
fn misspelt(name: &str) -> String {
    let mut other = String::with_capacity(name.len() + 1);
    let mut upper = false;
    for c in name.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                other.extend(c.to_uppercase());
                upper = false;
            }
            c if c.is_uppercase() => {
                other.push('_');
                other.extend(c.to_lowercase());
            }
            c => other.push(c),
        }
    }
    if other == name || other.is_empty() {
        format!("param_{name}")
    } else {
        other
    }
}

/// The value as JSON of another type.
fn of_another_type(value: Value<'_>) -> String {
    match value.kind() {
        JsonKind::String => {
            let number = value.as_str().and_then(|text| text.parse::<i64>().ok());
            number.map_or_else(|| format!("[{}]", value.raw()), |number| number.to_string())
        }
        JsonKind::Number
        | JsonKind::True
        | JsonKind::False
        | JsonKind::Null
        | JsonKind::Object
        | JsonKind::Array => quote(value.raw()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unknown_tool_is_near_a_known_one_and_none_of_them() {
        for (choice, tools, expected) in [
            (0, &[][..], "search_v2"),
            (1, &[], "searchs"),
            (2, &["search"], "search_tool"),
            (3, &["search"], "execute_search"),
            (0, &["search", "search_v2"], "searchs"),
            (3, &["execute_search"], "search_v2"),
        ] {
            let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
            assert_eq!(unknown("search", &tools, choice), expected);
        }
        assert_eq!(unknown("s", &[], 1), "s_tool");
    }

    #[test]
    fn malformed_arguments_are_malformed_as_models_malform_them() {
        for (choice, expected) in [
            (0, r#"{"city":"#),
            (1, r#"{"city":"Paris",}"#),
            (2, "{'city':'Paris'}"),
            (3, "// arguments\n{\"city\":\"Paris\"}"),
            (4, "```json\n{\"city\":\"Paris\"}\n```"),
            (5, r#"{"city":"Paris"}{"city":"Paris"}"#),
        ] {
            assert_eq!(malformed(r#"{"city":"Paris"}"#, choice), expected);
        }
    }

    #[test]
    fn malformed_arguments_are_never_what_they_were() {
        for arguments in ["select 1", "", "{", "[]", "3", " {} ", "'a'"] {
            for choice in 0..12 {
                let spoilt = malformed(arguments, choice);
                assert_ne!(spoilt.trim(), arguments.trim(), "{choice}");
            }
        }
    }

    #[test]
    fn wrong_arguments_lack_one_or_have_it_otherwise() {
        let arguments = r#"{"city_name":"Paris","days":3,"at":"7"}"#;
        for (choice, expected) in [
            (0, r#"{"days":3,"at":"7"}"#),
            (1, r#"{"city_name":["Paris"],"days":3,"at":"7"}"#),
            (2, r#"{"cityName":"Paris","days":3,"at":"7"}"#),
            (4, r#"{"city_name":"Paris","days":"3","at":"7"}"#),
            (5, r#"{"city_name":"Paris","param_days":3,"at":"7"}"#),
            (7, r#"{"city_name":"Paris","days":3,"at":7}"#),
        ] {
            assert_eq!(wrong(arguments, choice).as_deref(), Ok(expected));
        }
        assert_eq!(wrong("{}", 9).as_deref(), Ok(r#"{"input":null}"#));
        for none in ["ls -l", "[1]", ""] {
            assert!(wrong(none, 0).is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn malformed_arguments_are_never_json(text in any::<String>(), choice: u64) {
            for text in [text.clone(), quote(&text), format!("{{{}:1}}", quote(&text))] {
                let spoilt = malformed(&text, choice);
                prop_assert!(Document::parse(spoilt.as_bytes()).is_err(), "{}", spoilt);
                prop_assert_ne!(spoilt.trim(), text.trim());
            }
        }

        #[test]
        fn wrong_arguments_are_json_and_other_arguments(
            members in proptest::collection::btree_map("[a-z_]{1,6}", 0_u32..100, 1..5),
            choice: u64,
        ) {
            let arguments = serde_json::to_string(&members).expect("JSON");
            let wrong = wrong(&arguments, choice).expect("an object");
            prop_assert_ne!(&wrong, &arguments);
            prop_assert!(Document::parse(wrong.as_bytes()).is_ok());
        }
    }
}
