//! Secrets that are known by their values.

use super::*;

fn knowing(values: &[&str]) -> Redactor {
    Redactor::with_values(values.iter().map(|value| (*value).to_owned()))
}

#[test]
fn values_are_taken_out_and_nothing_of_a_longer_one_is_left() {
    let secrets = knowing(&["", "42", "hunter2", "hunter2-and-more", "say \"hi\""]);
    for (given, expected) in [
        ("say hunter2!", "say REDACTED!"),
        ("hunter2-and-more", "REDACTED"),
        ("42", "REDACTED"),
        ("1425", "1425"),
        (r#"{"a":"say \"hi\"!"}"#, r#"{"a":"REDACTED!"}"#),
        ("nothing", "nothing"),
    ] {
        let mut text = given.to_owned();
        secrets.text(&mut text, usize::MAX);
        assert_eq!(text, expected);
    }
}

#[test]
fn values_are_found_behind_the_escapes_of_json() {
    let secrets = knowing(&["kéy7", "plain", "a🦀/b", "é1"]);
    for (given, expected) in [
        (r#"{"a":"k\u00e9y7!"}"#, r#"{"a":"REDACTED!"}"#),
        (
            r#"{"a":"k\u00E9y7","b":"kéy7"}"#,
            r#"{"a":"REDACTED","b":"REDACTED"}"#,
        ),
        (r"\u006b\u00E9\u0079\u0037", "REDACTED"),
        (r"\u0070\u006Cain", "REDACTED"),
        (r#""{\"x\":\"k\\u00e9y7\"}""#, r#""{\"x\":\"REDACTED\"}""#),
        (r"a\ud83e\uDD80\/b.", "REDACTED."),
        (r"\u00e91", "REDACTED"),
        // So short a one is found only where it is the whole.
        (r"\u00e91 in a text", r"\u00e91 in a text"),
        // No escapes, or of other letters.
        (r"k\u00eay7 \u00e \ud83e \x", r"k\u00eay7 \u00e \ud83e \x"),
        (r"C:\new\kéy7", r"C:\new\REDACTED"),
    ] {
        let mut text = given.to_owned();
        secrets.text(&mut text, usize::MAX);
        assert_eq!(text, expected, "{given}");
    }
}

#[test]
fn values_are_found_percent_encoded() {
    let secrets = knowing(&["Tr0ub/3+x=", "kéy 7", "plain"]);
    for (given, expected) in [
        ("/a?pin=Tr0ub%2F3%2Bx%3D&b=1", "/a?pin=REDACTED&b=1"),
        ("/a?pin=Tr0ub%2f3%2bx=", "/a?pin=REDACTED"),
        ("/a?pin=Tr0ub/3%2Bx%3D", "/a?pin=REDACTED"),
        ("k%C3%A9y%207", "REDACTED"),
        ("x=k%C3%A9y+7&y=1+1", "x=REDACTED&y=1+1"),
        ("x=kéy+7", "x=REDACTED"),
        ("%70lain", "REDACTED"),
        ("100 % pure, %C3 %zz %", "100 % pure, %C3 %zz %"),
        ("%C3%28 and %FF%41", "%C3%28 and %FF%41"),
    ] {
        let mut text = given.to_owned();
        secrets.text(&mut text, usize::MAX);
        assert_eq!(text, expected, "{given}");
    }
}

#[test]
fn a_host_that_is_a_value_stays_in_a_url() {
    let secrets = knowing(&["api.example", "t0ken"]);
    for (given, expected) in [
        (
            "https://api.example/hooks/t0ken?to=api.example",
            "https://api.example/hooks/REDACTED?to=REDACTED",
        ),
        ("https://api.example", "https://api.example"),
        ("api.example:443", "api.example:443"),
    ] {
        let mut url = given.to_owned();
        secrets.url(&mut url, usize::MAX);
        assert_eq!(url, expected);
    }
}

#[test]
fn what_two_know_is_known_once() {
    let patterns = Redactor::with_patterns(["acct_[0-9]{4}"]).expect("a pattern");
    let both = patterns
        .and(&knowing(&["hunter2"]))
        .and(&knowing(&["hunter2", "t0ken"]));
    let mut text = "acct_1234 hunter2 t0ken".to_owned();
    both.text(&mut text, usize::MAX);
    assert_eq!(text, "REDACTED REDACTED REDACTED");
    assert_eq!(format!("{both:?}"), "Redactor(2)");
    assert!(!patterns.has_values());
}

#[test]
fn how_often_it_was_encoded_does_not_matter() {
    let redactor = knowing(&["k\u{e9}y 7/8"]);
    let json = |text: &str| Value::from(text).to_string();
    let url = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut given = "k\u{e9}y 7/8".to_owned();
    for level in 0..4 {
        for (encoded, expected) in [
            (json(&given), "\"REDACTED\"".to_owned()),
            (url(&given), "REDACTED".to_owned()),
        ] {
            let mut redacted = encoded.clone();
            redactor.text(&mut redacted, usize::MAX);
            if level == 0 {
                assert_eq!(redacted, expected, "{encoded}");
            }
            assert!(redacted.contains(REDACTED), "{encoded}");
            assert!(!redacted.contains('7'), "{encoded}");
        }
        given = if level % 2 == 0 {
            url(&given)
        } else {
            json(&given)
        };
    }
}
