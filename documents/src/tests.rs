//! Error messages for invalid documents, and the schema from the same reader.

use crate::VariableError;
use std::cell::Cell;

use serde_json::{Value, json};

use crate::{
    DocumentError, DocumentReader, Fields, NodeKind, SourceText, ValueReader, Variables, describe,
    parse,
};

/// One field of each kind.
#[derive(Debug, Default, PartialEq)]
struct Order {
    name: String,
    count: Option<u64>,
    share: Option<f64>,
    gift: bool,
    color: Option<u8>,
    tags: Vec<String>,
    sizes: Vec<(String, u64)>,
    lines: Vec<String>,
    ship: Option<String>,
}

const COLORS: [(&str, u8); 2] = [("red", 1), ("blue", 2)];

fn order(fields: &mut Fields<'_, '_>) -> Option<Order> {
    let name = fields.name("name", "Who ordered.");
    fields.require("name", "who ordered");
    let order = Order {
        count: fields.whole("count", "How many.", 1..=100, " pieces"),
        share: fields.real("share", "", 0.0..=1.0, ""),
        gift: fields.flag("gift", "").unwrap_or(false),
        color: fields.word("color", "", "color", &COLORS),
        tags: texts(fields.texts("tags", "", "a tag")),
        sizes: fields
            .field("sizes", "", |value| {
                value.pairs("a map of sizes", |_, value| value.whole(0..=u64::MAX, ""))
            })
            .unwrap_or_default()
            .into_iter()
            .map(|(name, size)| (name.value.clone(), size))
            .collect(),
        lines: fields
            .field("lines", "", |value| {
                value.some("a list of lines", "the list is empty; write a line", line)
            })
            .unwrap_or_default(),
        ship: fields.parsed("ship", "", |text| match text {
            "now" => Ok("now".to_owned()),
            other => Err(format!("`{other}` is no time; write `now`")),
        }),
        ..Order::default()
    };
    Some(Order {
        name: name?.value,
        ..order
    })
}

fn line(value: &mut ValueReader<'_, '_>) -> Option<String> {
    value.named("Line", |value| {
        value
            .either()
            .when(NodeKind::Scalar, |value| Some(value.words()?.value))
            .when(NodeKind::Map, |value| {
                value.fields("a line", |fields| {
                    Some(fields.text("of", "What it says.")?.value)
                })
            })
            .or("a text or a map with `of`")
    })
}

fn texts(texts: Option<Vec<crate::At<String>>>) -> Vec<String> {
    let texts = texts.unwrap_or_default().into_iter();
    texts.map(|text| text.value).collect()
}

fn table(name: &str) -> Result<String, VariableError> {
    match name {
        "SECRET" => Ok("hunter2".to_owned()),
        "COUNT" => Ok("25".to_owned()),
        "YES" => Ok("true".to_owned()),
        _ => Err(VariableError::NotSet),
    }
}

fn read(text: &str) -> Result<Order, Vec<DocumentError>> {
    let mut tree = parse("o.yaml", text).map_err(|error| vec![error])?;
    let mut reader = DocumentReader::new(SourceText::new("o.yaml", text));
    reader.expand(&mut tree, Variables::From(&table));
    let order = reader.read(&tree, |value| value.fields("an order", order));
    reader.finish(order).map(|(order, _)| order)
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_with_its_place() {
    let cases = [
        "",
        "[1]",
        "name: a\nname: b",
        "nmae: a",
        "name: ' '",
        "{name: a, count: 0}",
        "{name: a, count: '5'}",
        "{name: a, count: 5.0}",
        "{name: a, count: many, share: 2, gift: maybe, color: rde}",
        "{name: a, tags: [], sizes: {a: -1, b: x}, lines: []}",
        "{name: a, lines: [{fo: x}, [y], null, '']}",
        "{name: a, tags: {a: b}, sizes: [1]}",
        "{name: '${GONE}', count: '${GONE}', share: '${SECRET}'}",
        "{name: a, count: '${SECRET}', color: '${SECRET}', ship: 'x ${SECRET}'}",
        "{name: a, '${SECRET}': 1}",
    ];
    let told = cases.map(|text| {
        let errors = read(text).expect_err(text);
        let errors = errors
            .iter()
            .map(|error| format!("\n  {error} ({})", error.pointer));
        format!("{text:?}{}", errors.collect::<String>())
    });
    insta::assert_snapshot!(told.join("\n"));
    assert!(!told.concat().contains("hunter2"));
}

#[test]
fn a_variable_may_stand_for_any_value() {
    let text = "{name: x, count: '${COUNT}', gift: '${YES}', tags: '${SECRET}', color: RED, \
                lines: [a, {of: '$${b}'}], sizes: {'s${COUNT}': 3}}";
    let order = read(text).expect("valid");
    let expected = Order {
        name: "x".to_owned(),
        count: Some(25),
        gift: true,
        color: Some(1),
        tags: vec!["hunter2".to_owned()],
        sizes: vec![("s25".to_owned(), 3)],
        lines: vec!["a".to_owned(), "${b}".to_owned()],
        ..Order::default()
    };
    assert_eq!(order, expected);
}

#[test]
fn a_number_is_no_secret_and_a_text_is() {
    let text = "{name: x, count: '${COUNT}', tags: ['${SECRET}', '${SECRET}']}";
    let mut tree = parse("o", text).expect("YAML");
    let written = tree.value.to_json();
    let mut reader = DocumentReader::new(SourceText::new("o", text));
    reader.expand(&mut tree, Variables::From(&table));
    reader.read(&tree, |value| value.fields("an order", order));
    let (all, secret) = reader.expanded_in(&tree);
    assert_eq!(
        all.iter().collect::<Vec<_>>(),
        [("COUNT", "25"), ("SECRET", "hunter2")]
    );
    assert_eq!(secret.iter().collect::<Vec<_>>(), [("SECRET", "hunter2")]);
    assert_eq!(reader.as_written(&tree), written);
}

#[test]
fn variables_make_so_much_of_a_document_and_no_more() {
    let large = |_: &str| Ok("x".repeat((1 << 20) - 1));
    for (text, expected) in [
        ("{name: '${A}', tags: ['${B}', '${C}', '${D}']}", None),
        (
            "{name: '${A}', tags: ['${B}', '${C}', '${D}', '${E}']}",
            Some(
                "with this the document has more than 4194304 bytes of texts with their variables expanded",
            ),
        ),
        (
            "{name: '${A}${A}${A}${A}${A}'}",
            Some("its variables make this text longer than 4194304 bytes; name them less often"),
        ),
    ] {
        let mut tree = parse("o", text).expect("YAML");
        let mut reader = DocumentReader::new(SourceText::new("o", text));
        reader.expand(&mut tree, Variables::From(&large));
        let errors = reader.finish(Some(())).err().unwrap_or_default();
        let found = errors.first().map(|error| error.message.as_str());
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn values_of_texts_that_are_over_the_limit_are_not_looked_up() {
    let text = format!("[{}]", "'${A}', ".repeat(1_000));
    let mut tree = parse("o", &text).expect("YAML");
    let lookups = Cell::new(0);
    let large = |_: &str| {
        lookups.set(lookups.get() + 1);
        Ok("x".repeat(1 << 20))
    };
    DocumentReader::new(SourceText::new("o", &text)).expand(&mut tree, Variables::From(&large));
    assert_eq!(lookups.get(), 4);
}

#[test]
fn the_schema_is_what_is_read() {
    let schema = describe("Order", "What is ordered.", |value| {
        value.fields("an order", order)
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).expect("JSON"));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (document, valid) in [
        (
            json!({"name": "a", "count": 5, "lines": ["x", {"of": 1}], "tags": "t"}),
            true,
        ),
        (
            json!({"name": "a", "count": "${N}", "color": "Red", "gift": null}),
            true,
        ),
        (json!({"count": 5}), false),
        (json!({"name": "a", "count": 0}), false),
        (json!({"name": "a", "colour": "red"}), false),
        (json!({"name": "a", "lines": []}), false),
        (json!({"name": "a", "lines": [{"fo": 1}]}), false),
        (json!({"name": "a", "sizes": {"a": "b"}}), false),
    ] {
        assert_eq!(validator.is_valid(&document), valid, "{document}");
        let document: Value = document;
        let is_read = read(&document.to_string()).is_ok();
        let has_variable = document.to_string().contains("${N}");
        assert!(is_read == valid || has_variable, "{document}");
    }
}

#[test]
fn an_error_in_a_file_behind_another_has_its_own_lines() {
    let mut source = SourceText::new("one.yaml", "a: 1\nb: 2");
    let lines = source.add("two.yaml", "name: x\ncount: 0\n");
    assert_eq!(lines, 2);
    let mut tree = parse("two.yaml", "name: x\ncount: 0\n").expect("YAML");
    tree.each_position(&mut |position| position.line += lines);
    let mut reader = DocumentReader::new(source);
    let order = reader.read(&tree, |value| value.fields("an order", order));
    let errors = reader.finish(order).expect_err("an error");
    assert!(
        errors[0].to_string().starts_with("two.yaml:2:8: found `0`"),
        "{errors:?}"
    );
}
