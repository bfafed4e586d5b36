use proptest::prelude::*;

use super::*;

#[test]
#[rustfmt::skip]
fn only_json_is_read() {
    for (text, at, what) in [
        ("", 0, "the text ends in the middle"),
        ("{", 1, "the text ends in the middle"),
        ("[1,]", 3, "expected a value"),
        ("{\"a\":1,}", 7, "expected a key"),
        ("{a:1}", 1, "expected a key"),
        ("{\"a\" 1}", 5, "expected a colon"),
        ("[1 2]", 3, "expected a comma or the end of the object or list"),
        ("[1}", 2, "expected a comma or the end of the object or list"),
        ("1 2", 2, "more follows after the end"),
        ("{} // c", 3, "more follows after the end"),
        ("01", 1, "more follows after the end"),
        ("NaN", 0, "expected a value"),
        ("nul", 0, "expected true, false or null"),
        ("+1", 0, "expected a value"),
        ("1.", 2, "expected a digit"),
        ("-", 1, "expected a digit"),
        ("1e", 2, "expected a digit"),
        ("'a'", 0, "expected a value"),
        ("\"a", 2, "a string does not end"),
        ("\"\n\"", 1, "a control character in a string"),
        (r#""\x""#, 2, "an escape that JSON does not know"),
        (r#""\u12g4""#, 2, "an escape that JSON does not know"),
        ("\u{feff}{}", 0, "expected a value"),
    ] {
        let error = Document::parse(text.as_bytes()).expect_err(text);
        assert_eq!((error.at, error.what), (at, what), "{text:?}");
    }
    let error = Document::parse(b"\"\xff\"").expect_err("not UTF-8");
    assert_eq!((error.at, error.what), (1, "not UTF-8"));
}

#[test]
fn depth_and_number_of_values_are_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Document::parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    let error = Document::parse(nested(100_000).as_bytes()).expect_err("too deep");
    assert_eq!((error.at, error.what), (MAX_DEPTH, "nested too deep"));
    let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
    let error = Document::parse(many.as_bytes()).expect_err("too many");
    assert_eq!(error.what, "too many values");
}

#[test]
fn values_are_found_by_key_and_order() {
    let text = r#"{"a":[1,{"b":"x\ny"},[]],"n":18446744073709551615,"a\u0041":true,"n2":1e3}"#;
    let document = Document::parse(text.as_bytes()).expect("JSON");
    let root = document.root();
    let list = root.get("a").expect("a");
    assert_eq!(list.items().count(), 3);
    assert_eq!(list.members().count(), 0);
    let inner = list
        .items()
        .nth(1)
        .and_then(|item| item.get("b"))
        .expect("b");
    assert_eq!(inner.as_str().as_deref(), Some("x\ny"));
    assert_eq!(&text[inner.span()], r#""x\ny""#);
    assert_eq!(root.get("n").and_then(Value::as_u64), Some(u64::MAX));
    assert_eq!(root.get("n2").and_then(Value::as_u64), None);
    assert_eq!(root.get("aA").and_then(Value::as_bool), Some(true));
    assert!(root.get("b").is_none());
    assert!(root.get("n").and_then(|number| number.get("x")).is_none());
    let keys: Vec<String> = root
        .members()
        .filter_map(|m| m.key().map(std::borrow::Cow::into_owned))
        .collect();
    assert_eq!(keys, ["a", "n", "aA", "n2"]);
}

#[test]
fn of_two_members_with_one_key_the_last_counts() {
    let document = Document::parse(br#"{"a":1,"a":2}"#).expect("JSON");
    assert_eq!(document.root().get("a").and_then(Value::as_u64), Some(2));
}

#[test]
fn the_beginning_of_a_text_says_what_is_complete() {
    for (text, expected) in [
        (r#"{"model":"m","stream":tr"#, vec!["model"]),
        (r#"{"model":"m","n":12"#, vec!["model"]),
        (
            r#"{"model":"m","messages":[{"role":"us"#,
            vec!["model", "messages"],
        ),
        (r#"{"model":"m"#, vec![]),
        (r#"{"model":"m"} trailing"#, vec!["model"]),
        ("{\"model\":\"m\",\"x\":\"\u{e9}", vec!["model"]),
    ] {
        // The last byte may be half a character.
        let bytes = &text.as_bytes()[..text.len() - usize::from(text.ends_with('\u{e9}'))];
        let document = Document::parse_prefix(bytes).expect("begins as JSON");
        let keys: Vec<String> = document
            .root()
            .members()
            .filter_map(|member| member.key().map(std::borrow::Cow::into_owned))
            .collect();
        assert_eq!(keys, expected, "{text}");
    }
    assert!(Document::parse_prefix(b"<html>").is_none());
    assert!(Document::parse_prefix(b"").is_none());
}

/// Makes one kind of change to the values under the named keys.
fn edited(text: &str, keys: &[&str], change: impl Fn(&mut Edits<'_>, NodeId)) -> String {
    let document = Document::parse(text.as_bytes()).expect("JSON");
    let mut edits = Edits::new(&document);
    let mut open = vec![document.root()];
    while let Some(value) = open.pop() {
        if value.key().is_some_and(|key| keys.contains(&&*key)) {
            change(&mut edits, value.id());
        }
        open.extend(value.members().chain(value.items()));
    }
    String::from_utf8(edits.apply()).expect("UTF-8")
}

#[test]
fn an_edit_touches_nothing_else() {
    let text = r#"{ "a" : 12345678901234567890123.0e5, "b":[1, {"c" : "\u00e9"}],"d":{} }"#;
    for (keys, removed) in [
        (&["a"][..], r#"{ "b":[1, {"c" : "\u00e9"}],"d":{} }"#),
        (&["b"], r#"{ "a" : 12345678901234567890123.0e5, "d":{} }"#),
        (
            &["d"],
            r#"{ "a" : 12345678901234567890123.0e5, "b":[1, {"c" : "\u00e9"}] }"#,
        ),
        (
            &["c"],
            r#"{ "a" : 12345678901234567890123.0e5, "b":[1, {}],"d":{} }"#,
        ),
        (&["a", "b"], r#"{ "d":{} }"#),
        (&["b", "d"], r#"{ "a" : 12345678901234567890123.0e5 }"#),
        (&["a", "d"], r#"{ "b":[1, {"c" : "\u00e9"}] }"#),
        (&["a", "b", "c", "d"], "{  }"),
        (&[], text),
    ] {
        assert_eq!(
            edited(text, keys, |edits, id| {
                edits.remove(id);
            }),
            removed,
            "{keys:?}"
        );
    }
    let renamed = edited(text, &["c"], |edits, id| edits.rename(id, "x\"y"));
    assert_eq!(renamed, text.replace("\"c\"", r#""x\"y""#));
    let longer = edited(text, &["a", "c"], |edits, id| {
        edits.insert_after(id, "n", "[]");
    });
    let expected = text
        .replace("e5,", "e5,\"n\":[],")
        .replace("9\"}", "9\",\"n\":[]}");
    assert_eq!(longer, expected);
    let replaced = edited(text, &["b", "c"], |edits, id| edits.replace(id, "null"));
    assert_eq!(replaced, text.replace(r#"[1, {"c" : "\u00e9"}]"#, "null"));
}

#[test]
fn what_is_added_behind_a_value_stays_when_what_followed_goes() {
    let document = Document::parse(br#"{"a":1,"b":2,"c":3}"#).expect("JSON");
    let member = |key| document.root().get(key).expect("there").id();
    let mut edits = Edits::new(&document);
    edits.replace(member("a"), "null");
    edits.insert_after(member("a"), "n", "[]");
    edits.remove(member("b"));
    edits.remove(member("c"));
    assert_eq!(edits.apply(), br#"{"a":null,"n":[]}"#);
}

#[test]
fn what_is_around_a_pruned_list_goes_when_nothing_is_left_of_it() {
    let text = r#"{"o":[{"c":[{"x":1},{"x":2}]},{"c":[{"x":3}]}]}"#;
    let document = Document::parse(text.as_bytes()).expect("JSON");
    let outer: Vec<Value<'_>> = document.root().get("o").expect("there").items().collect();
    for (pruned, expected) in [
        (&[2_u64][..], r#"{"o":[{"c":[{"x":1}]},{"c":[{"x":3}]}]}"#),
        (&[1, 2], r#"{"o":[{"c":[{"x":3}]}]}"#),
        (&[1, 2, 3], r#"{"o":[]}"#),
    ] {
        let mut edits = Edits::new(&document);
        for outer in &outer {
            for item in outer.get("c").expect("there").items() {
                if item
                    .get("x")
                    .and_then(Value::as_u64)
                    .is_some_and(|x| pruned.contains(&x))
                {
                    edits.prune(item.id(), outer.id());
                }
            }
        }
        assert_eq!(String::from_utf8_lossy(&edits.apply()), expected);
    }
}

#[test]
fn taking_out_every_item_of_a_long_list_is_no_work_of_its_own() {
    let text = format!("{{\"list\":[{}0],\"kept\":1}}", "0,".repeat(20_000));
    let document = Document::parse(text.as_bytes()).expect("JSON");
    let mut edits = Edits::new(&document);
    let list = document.root().get("list").expect("list");
    for item in list.items() {
        edits.prune(item.id(), list.id());
    }
    assert_eq!(edits.apply(), b"{\"kept\":1}");
}

/// JSON values, and texts that are almost JSON.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            proptest::collection::btree_map(".{0,4}", inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_parsed_into_the_same(value in any_json(), pretty: bool) {
        let text = if pretty {
            serde_json::to_string_pretty(&value)
        } else {
            serde_json::to_string(&value)
        }.expect("serialises");
        let document = Document::parse(text.as_bytes()).expect("JSON");
        prop_assert_eq!(Edits::new(&document).apply(), text.as_bytes());
        prop_assert_eq!(document.root().to_json(), value);
    }

    #[test]
    fn any_removals_leave_json(value in any_json(), picks in proptest::collection::vec(any::<u32>(), 0..6)) {
        let text = serde_json::to_string(&value).expect("serialises");
        let document = Document::parse(text.as_bytes()).expect("JSON");
        let mut ids = Vec::new();
        let mut open = vec![document.root()];
        while let Some(value) = open.pop() {
            ids.push(value.id());
            open.extend(value.members().chain(value.items()));
        }
        let mut edits = Edits::new(&document);
        for pick in picks {
            let id = ids[pick as usize % ids.len()];
            match pick % 3 {
                0 => edits.remove(id),
                1 => edits.prune(id, ids[pick as usize / 7 % ids.len()]),
                _ => edits.replace(id, "[{\"new\":0}]"),
            }
        }
        let edited = edits.apply();
        prop_assert!(Document::parse(&edited).is_ok(), "{}", String::from_utf8_lossy(&edited));
    }

    #[test]
    fn json_is_what_serde_json_takes_for_it(text in "[\\[\\]{}\",:0-9a-f.eE+\\-\\\\u nrtl]{0,16}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let ours = Document::parse(text.as_bytes());
        // serde_json refuses half a surrogate pair, which the grammar allows.
        if !text.contains("\\u") {
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}", theirs);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(document) = Document::parse_prefix(&bytes) {
            let _ = document.root().get("a");
        }
    }
}
