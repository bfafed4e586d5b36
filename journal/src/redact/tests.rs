//! Texts that are redacted, and texts that are not.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn text(redactor: &Redactor, given: &str) -> String {
    let mut text = given.to_owned();
    redactor.text(&mut text, usize::MAX);
    text
}

fn url(redactor: &Redactor, given: &str) -> String {
    let mut url = given.to_owned();
    redactor.url(&mut url, usize::MAX);
    url
}

fn body(media_type: Option<&str>, given: &str) -> Bytes {
    Redactor::default().body(media_type, &Bytes::copy_from_slice(given.as_bytes()))
}

fn knowing(values: &[&str]) -> Redactor {
    Redactor::with_values(values.iter().map(|value| (*value).to_owned()))
}

#[test]
#[rustfmt::skip]
fn secrets_in_urls_are_taken_out_and_nothing_else_is() {
    for (given, expected) in [
        ("https://h/v1?key=abc&alt=sse", "https://h/v1?key=REDACTED&alt=sse"),
        ("https://h/v1?a=1&api_key=x&b=2", "https://h/v1?a=1&api_key=REDACTED&b=2"),
        ("https://h/?API-Key=x", "https://h/?API-Key=REDACTED"),
        ("https://h/?access%5Ftoken=x", "https://h/?access%5Ftoken=REDACTED"),
        ("https://h/?sig=a=b&x", "https://h/?sig=REDACTED&x"),
        ("https://h/?X-Amz-Signature=0f&X-Amz-Date=1", "https://h/?X-Amz-Signature=REDACTED&X-Amz-Date=1"),
        ("https://h/?a=1?token=x", "https://h/?a=1?token=REDACTED"),
        (
            "https://h/?x=https%3A%2F%2Fh%2F%3Fapi_key%3Done&y=2",
            "https://h/?x=https%3A%2F%2Fh%2F%3Fapi_key%3DREDACTED&y=2",
        ),
        (
            "https://h/?x=https%253A%252F%252Fh%252F%253Fapi_key%253Done",
            "https://h/?x=https%253A%252F%252Fh%252F%253Fapi_key%253DREDACTED",
        ),
        ("https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25", "https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25"),
        ("https://h/cb#access_token=abc&token_type=x", "https://h/cb#access_token=REDACTED&token_type=x"),
        (
            "https://h/?q=see%20sk%2Dabcdefgh12&x=%7B%22pwd%22%3A12%7D",
            "https://h/?q=see%20REDACTED&x=%7B%22pwd%22%3A%22REDACTED%22%7D",
        ),
        ("https://h/?key=", "https://h/?key="),
        ("https://h/?key", "https://h/?key"),
        ("https://h/?max_tokens=5&pageToken=abc&monkey=2", "https://h/?max_tokens=5&pageToken=abc&monkey=2"),
        ("https://u:p@h/x", "https://REDACTED@h/x"),
        ("https://u@h?x", "https://REDACTED@h?x"),
        ("https://a@b:c@h/x", "https://REDACTED@h/x"),
        ("u:p@h:443", "REDACTED@h:443"),
        ("https://h/users/a@b.example", "https://h/users/a@b.example"),
        ("https://h/?mail=a@b.example", "https://h/?mail=a@b.example"),
        ("https://h/sk-ant-api03-abcdefgh/x", "https://h/REDACTED/x"),
        ("https://h/bot123456789:AAF-abcdefghijklmnopqrstuvwxyz01234/send", "https://h/REDACTED/send"),
        ("http://127.0.0.1:80/plain?q=cats", "http://127.0.0.1:80/plain?q=cats"),
    ] {
        assert_eq!(url(&Redactor::default(), given), expected);
    }
}

#[test]
fn the_users_own_patterns_are_taken_out_too() {
    let redactor = Redactor::with_patterns(["acct_[0-9]{4}"]).expect("a pattern");
    let text = text(&redactor, "charge acct_1234 with sk-abcdefgh12");
    assert_eq!(text, "charge REDACTED with REDACTED");
    assert_eq!(redactor.header("x-note", "acct_1234"), "REDACTED");
    let bad = Redactor::with_patterns(["a("]).expect_err("no pattern");
    assert!(
        bad.to_string()
            .starts_with("redact: `a(` is not a regular expression"),
        "{bad}"
    );
}

#[test]
fn headers_are_judged_by_name_and_by_shape() {
    let redactor = Redactor::default();
    for (name, value, expected) in [
        ("Authorization", "anything", "REDACTED"),
        ("x-note", "Bearer abcdefgh123456789", "Bearer REDACTED"),
        ("accept", "text/event-stream", "text/event-stream"),
    ] {
        assert_eq!(redactor.header(name, value), expected, "{name}");
    }
}

/// Texts and their redacted form. Tapes look up requests by that form, so it must not change.
fn redacts(cases: &[(&str, &str)]) {
    for (given, expected) in cases {
        let redacted = text(&Redactor::default(), given);
        assert_eq!(redacted, *expected, "{given}");
        assert_eq!(text(&Redactor::default(), &redacted), redacted);
    }
}

#[test]
#[rustfmt::skip]
fn secrets_are_known_by_their_shape() {
    let crc = "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";
    let block = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----";
    redacts(&[
        ("provided: sk-proj-abc_DEF-123456.", "provided: REDACTED."),
        ("sk-short, risk-averse-behaviour, 0.4242424242424242", "sk-short, risk-averse-behaviour, 0.4242424242424242"),
        (&*format!("TOKEN_{crc}"), "TOKEN_REDACTED"),
        (&format!("x{crc}"), &format!("x{crc}")),
        ("https://hooks.slack.com/services/T00/B00/XXXX", "https://REDACTED"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc,", "REDACTED,"),
        ("eyJust a word. And another.", "eyJust a word. And another."),
        (&format!("a {block} b"), "a REDACTED b"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "REDACTED"),
        ("-----BEGIN PUBLIC KEY-----\nMIIB", "-----BEGIN PUBLIC KEY-----\nMIIB"),
        ("the bearer of bad news: bearer%20abcdefgh12345678", "the bearer of bad news: bearer%20REDACTED"),
        ("a basic training: Basic dXNlcjpwYXNzdw==", "a basic training: Basic REDACTED"),
        ("authorization=token abcd1234", "authorization=token REDACTED"),
        ("see authorization: \"token abcd\"", "see authorization: \"token REDACTED\""),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY;", "aws_secret_access_key = REDACTED;"),
        ("pay 4242 4242 4242 4242.", "pay REDACTED."),
        ("no=4111-1111-1111-1111&x", "no=REDACTED&x"),
        (
            "4242424242424241, 42424242-4242-4242-4242-424242424242",
            "4242424242424241, 42424242-4242-4242-4242-424242424242",
        ),
        ("order 4242424242424242a, 1763812345678901", "order 4242424242424242a, 1763812345678901"),
        ("at pg://u:hunter2@db/x, pg://postgres@h/x", "at pg://REDACTED@db/x, pg://postgres@h/x"),
        ("https_proxy=http://k3y-of-nobody-here@h:8080", "https_proxy=http://REDACTED@h:8080"),
        ("https://host.example/a@b:c", "https://host.example/a@b:c"),
    ]);
}

#[test]
#[rustfmt::skip]
fn parameters_header_lines_and_form_fields_are_known_by_their_names() {
    redacts(&[
        ("for https://h/x?api_key=abc#sig=d refused", "for https://h/x?api_key=REDACTED#sig=REDACTED refused"),
        ("client_id=a, client_secret=b", "client_id=a, client_secret=b"),
        ("GET / HTTP/1.1\r\nX-Api-Key: a b\r\nHost: h\r\n", "GET / HTTP/1.1\r\nX-Api-Key: REDACTED\r\nHost: h\r\n"),
        ("Authorization: tok", "Authorization: REDACTED"),
        ("> authorization: Digest u=\"x\", r=\"y\"\n", "> authorization: Digest REDACTED\n"),
        ("Cookie: a=b; c=d\nSet-Cookie:e=f", "Cookie: REDACTED\nSet-Cookie:REDACTED"),
        ("curl -H 'X-Api-Key: a' -H \"Cookie: b\" h", "curl -H 'X-Api-Key: REDACTED' -H \"Cookie: REDACTED\" h"),
        (
            r#"{"a":["x-auth-token: a","curl -H 'X-Otp: b","c"]}"#,
            r#"{"a":["x-auth-token: REDACTED","curl -H 'X-Otp: REDACTED","c"]}"#,
        ),
        ("X-Api-Key:\r\nHost: h, see x-api-key: there", "X-Api-Key:\r\nHost: h, see x-api-key: there"),
        ("Idempotency-Key: a\nPassword: at least 8 characters", "Idempotency-Key: a\nPassword: at least 8 characters"),
        (
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\na\r\nb\r\n--b--\r\n",
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nREDACTED\r\n--b--\r\n",
        ),
        (
            "--b\ncontent-disposition: form-data; filename=\"k\"; name=token\nContent-Type: text/plain\n\na",
            "--b\ncontent-disposition: form-data; filename=\"k\"; name=token\nContent-Type: text/plain\n\nREDACTED",
        ),
        (
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"password\"\r\n\r\na\r\n--b--\r\n",
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"password\"\r\n\r\na\r\n--b--\r\n",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn elements_and_attributes_are_known_by_their_names() {
    redacts(&[
        (
            "<a><s:Password Type=\"t\">x y</s:Password><b>c</b></a>",
            "<a><s:Password Type=\"t\">REDACTED</s:Password><b>c</b></a>",
        ),
        ("<apiKey><![CDATA[x]]></apiKey>", "<apiKey>REDACTED</apiKey>"),
        (
            "<user id=\"1\" password=\"x\" name='n' apiKey='y'/>",
            "<user id=\"1\" password=\"REDACTED\" name='n' apiKey='REDACTED'/>",
        ),
        (
            "<input type=\"password\" name=\"password\" value=\"x\">",
            "<input type=\"password\" name=\"password\" value=\"REDACTED\">",
        ),
        ("<add key='ClientSecret' value='x' />", "<add key='ClientSecret' value='REDACTED' />"),
        (
            r#"{"t":"\u003cpassword\u003ex\u003c/password\u003e"}"#,
            r#"{"t":"\u003cpassword\u003eREDACTED\u003c/password\u003e"}"#,
        ),
        ("https://user:<password>@host/<path>, <password/>", "https://user:<password>@host/<path>, <password/>"),
        ("<token>the</token><label for=\"password\">p</label>", "<token>the</token><label for=\"password\">p</label>"),
    ]);
}

#[test]
#[rustfmt::skip]
fn members_of_json_are_known_by_their_names() {
    redacts(&[
        (r#"{"password":"first\"TAIL","n":"x"}"#, r#"{"password":"REDACTED","n":"x"}"#),
        (r#"{"password" : "a\\","n":"x"}"#, r#"{"password" : "REDACTED","n":"x"}"#),
        (r#"{"SessionToken":"x","OPENAI_API_KEY":"y"}"#, r#"{"SessionToken":"REDACTED","OPENAI_API_KEY":"REDACTED"}"#),
        (
            r#"{"githubToken":"a","tokens":["b","abcdefgh12345678"]}"#,
            r#"{"githubToken":"REDACTED","tokens":["b","REDACTED"]}"#,
        ),
        (r#"{"password":1234,"n":5}"#, r#"{"password":"REDACTED","n":5}"#),
        (r#"{"a":"{\"pwd\":12}"}"#, r#"{"a":"{\"pwd\":\"REDACTED\"}"}"#),
        (r#"{"a":"{\"password\":\"x\\\"y\\\\\",\"n\":\"z\"}"}"#, r#"{"a":"{\"password\":\"REDACTED\",\"n\":\"z\"}"}"#),
        (
            r#"{"password":{"x":"a","y":{"z":["b",{"w":1}]},"t":true},"n":"c"}"#,
            r#"{"password":{"x":"REDACTED","y":{"z":["REDACTED",{"w":"REDACTED"}]},"t":true},"n":"c"}"#,
        ),
        (
            r#"{"a":"{\"credentials\":{\n \"user\": \"u\",\n \"n\": 5}}","b":"c"}"#,
            r#"{"a":"{\"credentials\":{\n \"user\": \"REDACTED\",\n \"n\": 5}}","b":"c"}"#,
        ),
        (r#"{"a":"{\"secret\":[\"cut","password":"x"}"#, r#"{"a":"{\"secret\":[\"REDACTED","password":"REDACTED"}"#),
        (r#"…,"client_secret":"cut in the mid"#, r#"…,"client_secret":"REDACTED"#),
        (
            r#"{"password":{"type":"hunter2"},"secret":{"type":"string","value":"x"}}"#,
            r#"{"password":{"type":"REDACTED"},"secret":{"type":"REDACTED","value":"REDACTED"}}"#,
        ),
        (
            r##"{"password":{"description":"yours","type":["string","null"]},"apiKey":{"$ref":"#/a"}}"##,
            r##"{"password":{"description":"yours","type":["string","null"]},"apiKey":{"$ref":"#/a"}}"##,
        ),
        (
            r#"{"password":"","secret":null,"n":"x","required":["password"],"max_tokens":12,"key":"colour"}"#,
            r#"{"password":"","secret":null,"n":"x","required":["password"],"max_tokens":12,"key":"colour"}"#,
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn secrets_are_found_in_what_is_encoded() {
    redacts(&[
        (r#"{"q":"see\nsk-abcdefgh12\tend"}"#, r#"{"q":"see\nREDACTED\tend"}"#),
        (r#"{"q":"caf\u00e9 \u0073k-abcdefgh12"}"#, r#"{"q":"caf\u00e9 REDACTED"}"#),
        (
            r#"{"next":"https://h/?api_key=abc&n=1\u0026sig=d","q":"a ? token = b"}"#,
            r#"{"next":"https://h/?api_key=REDACTED&n=1\u0026sig=REDACTED","q":"a ? token = b"}"#,
        ),
        (
            r#"{"a":"/go?x=https%3A%2F%2Fh%2F%3Fapi_key%3Dabc&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#,
            r#"{"a":"/go?x=https%3A%2F%2Fh%2F%3Fapi_key%3DREDACTED&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#,
        ),
    ]);
}

#[test]
fn every_shape_is_found_and_is_in_the_docs() {
    for (owner, prefix, _, least) in shapes::KEYS {
        let key = format!("{prefix}{}", "A0".repeat(*least));
        let given = format!("x {key} y");
        let found = Redactor::default().find(&given);
        assert_eq!(
            (found[0].name, &given[found[0].range.clone()]),
            (*owner, &*key)
        );
    }
    let docs = include_str!("../../../docs/redaction.md");
    let listed: Vec<&str> = docs
        .lines()
        .skip_while(|line| *line != "| whose | begins with | then at least |")
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let row = |(owner, prefix, class, least): &(&str, &str, &str, usize)| {
        let class = match *class {
            shapes::HEX => "hex digits".to_owned(),
            shapes::BASE64 => "base64".to_owned(),
            class => format!("`{class}`"),
        };
        format!("| {owner} | `{prefix}` | {least} {class} |")
    };
    let written: Vec<String> = shapes::KEYS.iter().map(row).collect();
    assert_eq!(listed, written, "{}", written.join("\n"));
}

#[test]
fn hostile_texts_take_no_longer_than_others_of_their_length() {
    // Each would take hours if every possible beginning were searched to the end.
    for piece in [
        "eyJaaaaaaaa-AKIA1234567890123456-",
        "-----BEGIN PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "bot123456:a",
        "authorization:bearer ",
        "4242 4242 4242 4242 ",
        "x=",
        "<a password=\"",
        "<password>",
        "\"password\":{",
        "\"x-api-key: ",
        "content-disposition: form-data; name=x\n\n",
        "name=\"a\" ",
        "+%2B\\\"",
    ] {
        let text = piece.repeat((1 << 16) / piece.len());
        let found = Redactor::default().find_in(&text, true);
        assert!(found.len() <= text.len(), "{piece}");
    }
}

#[test]
fn a_key_on_the_edge_of_what_is_kept_is_not_kept_in_half() {
    let redactor = Redactor::default();
    let mut text = format!("{} sk-abcdefghijklmnop", "x".repeat(95));
    redactor.text(&mut text, 100);
    assert_eq!(text, format!("{} R…", "x".repeat(95)));
}

proptest! {
    #[test]
    fn whatever_the_text_it_is_bounded_and_holds_no_key(
        before in "\\PC{0,80}",
        key in "sk-[A-Za-z0-9]{20,40}",
        after in "[ \\PC]{0,80}",
        most in 0_usize..120,
    ) {
        let redactor = Redactor::default();
        for redact in [Redactor::text, Redactor::url] {
            let mut text = format!("{before} {key} {after}");
            redact(&redactor, &mut text, most);
            prop_assert!(text.len() <= most.max("…".len()));
            prop_assert!(!text.contains(&key[..12]), "{}", text);
        }
    }
}

#[test]
fn bodies_are_redacted_by_what_they_are() {
    for (media_type, given, expected) in [
        (
            Some("application/x-www-form-urlencoded; charset=utf-8"),
            "client_id=a&client_secret=b",
            "client_id=a&client_secret=REDACTED",
        ),
        (
            None,
            "client_id=a&n=client_secret",
            "client_id=a&n=client_secret",
        ),
        (
            Some("application/json"),
            r#"{"access_token": "abc", "user":{"password":"x"}}"#,
            r#"{"access_token": "REDACTED", "user":{"password":"REDACTED"}}"#,
        ),
    ] {
        assert_eq!(body(media_type, given), expected, "{given}");
    }
}

#[test]
fn a_key_among_bytes_is_taken_out_of_them() {
    let given = Bytes::from_static(b"\xff\xfesk-abcdefgh12\x00\xe9");
    let redacted = Redactor::default().body(None, &given);
    assert_eq!(&redacted[..], b"\xff\xfeREDACTED\x00\xe9");
    let harmless = Bytes::from_static(b"\xff\x00");
    assert_eq!(Redactor::default().body(None, &harmless), harmless);
}

#[test]
fn what_is_compressed_without_saying_so_is_looked_into() {
    let packed = |text: &str| {
        let encoder = Encoder::new(Coding::Gzip).expect("an encoder");
        Bytes::from(encoder.whole(text.as_bytes()).expect("a body"))
    };
    let given = packed(r#"{"q":"sk-abcdefgh12"}"#);
    let redacted = Redactor::default().body(None, &given);
    assert_eq!(unpacked(&redacted).expect("gzip"), r#"{"q":"REDACTED"}"#);
    let cut_off = given.slice(..given.len() - 4);
    let redacted = Redactor::default().body(None, &cut_off);
    assert_eq!(unpacked(&redacted).expect("gzip"), r#"{"q":"REDACTED"}"#);
    // A file that decompresses to itself must not be decompressed forever.
    let encoder = Encoder::new(Coding::Gzip).expect("an encoder");
    let twice = Bytes::from(encoder.whole(&given).expect("a body"));
    assert_eq!(Redactor::default().body(None, &twice), twice);
    let harmless = packed("nothing");
    assert_eq!(Redactor::default().body(None, &harmless), harmless);
    let broken = Bytes::from_static(b"\x1f\x8b\x08 and no more");
    assert_eq!(Redactor::default().body(None, &broken), broken);
}

#[test]
#[rustfmt::skip]
fn what_a_header_hides_is_taken_out_of_bodies_too() {
    let headers = [
        ("x-api-key", "correct/horse"),
        ("authorization", "Basic dXNlcjpiYXR0ZXJ5IHN0YXBsZQ=="),
        ("Cookie", "a=1; session=0ld-s3ssion; b=2"),
        ("x-auth-token", "short"),
        ("x-note", "seen in clear"),
    ];
    let headers = headers.map(|(name, value)| (name, value.as_bytes()));
    let redactor = Redactor::default().and_headers(headers.into_iter());
    for (given, expected) in [
        (r#"{"you":"correct\/horse","said":"correct/horse!"}"#, r#"{"you":"REDACTED","said":"REDACTED!"}"#),
        ("/echo?got=correct%2Fhorse", "/echo?got=REDACTED"),
        ("dXNlcjpiYXR0ZXJ5IHN0YXBsZQ== is battery staple", "REDACTED is REDACTED"),
        ("got=battery+staple", "got=REDACTED"),
        ("0ld-s3ssion, short, seen in clear, 1", "REDACTED, short, seen in clear, 1"),
    ] {
        let redacted = redactor.body(None, &Bytes::from_static(given.as_bytes()));
        assert_eq!(redacted, expected, "{given}");
    }
}

#[test]
fn every_text_of_a_document_is_looked_at() {
    let mut document = json!({
        "t0ken": ["a t0ken", 1, { "x": "t0ken" }],
        "headers": { "set-cookie": "a=b", "x-api-key": "c", "accept": "*/*" },
        "payload": "{\"password\":\"d\"}",
        "pin": "42",
    });
    let values = ["t0ken", "42"].map(str::to_owned);
    Redactor::with_values(values).document(&mut document);
    let expected = json!({
        "REDACTED": ["a REDACTED", 1, { "x": "REDACTED" }],
        "headers": { "set-cookie": "REDACTED", "x-api-key": "REDACTED", "accept": "*/*" },
        "payload": "{\"password\":\"REDACTED\"}",
        "pin": "REDACTED",
    });
    assert_eq!(document, expected);
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
        assert_eq!(text(&secrets, given), expected);
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
        // So short a value is found only as the whole text.
        (r"\u00e91 in a text", r"\u00e91 in a text"),
        // Invalid escapes, or escapes of other letters.
        (r"k\u00eay7 \u00e \ud83e \x", r"k\u00eay7 \u00e \ud83e \x"),
        (r"C:\new\kéy7", r"C:\new\REDACTED"),
    ] {
        assert_eq!(text(&secrets, given), expected, "{given}");
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
        assert_eq!(text(&secrets, given), expected, "{given}");
    }
}

#[test]
#[rustfmt::skip]
fn a_host_that_is_a_value_stays_in_a_url() {
    let secrets = knowing(&["api.example", "t0ken"]);
    for (given, expected) in [
        ("https://api.example/hooks/t0ken?to=api.example", "https://api.example/hooks/REDACTED?to=REDACTED"),
        ("https://api.example", "https://api.example"),
        ("api.example:443", "api.example:443"),
    ] {
        assert_eq!(url(&secrets, given), expected);
    }
}

#[test]
fn what_two_know_is_known_once() {
    let patterns = Redactor::with_patterns(["acct_[0-9]{4}"]).expect("a pattern");
    let both = patterns
        .and(&knowing(&["hunter2"]))
        .and(&knowing(&["hunter2", "t0ken"]));
    let text = text(&both, "acct_1234 hunter2 t0ken");
    assert_eq!(text, "REDACTED REDACTED REDACTED");
    assert_eq!(format!("{both:?}"), "Redactor(2)");
    assert!(!patterns.has_values());
}

#[test]
fn how_often_it_was_encoded_does_not_matter() {
    let redactor = knowing(&["k\u{e9}y 7/8"]);
    let json = |text: &str| Value::from(text).to_string();
    let percent = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut given = "k\u{e9}y 7/8".to_owned();
    for level in 0..4 {
        for (encoded, expected) in [
            (json(&given), "\"REDACTED\"".to_owned()),
            (percent(&given), "REDACTED".to_owned()),
        ] {
            let redacted = text(&redactor, &encoded);
            if level == 0 {
                assert_eq!(redacted, expected, "{encoded}");
            }
            assert!(redacted.contains(REDACTED), "{encoded}");
            assert!(!redacted.contains('7'), "{encoded}");
        }
        given = if level % 2 == 0 {
            percent(&given)
        } else {
            json(&given)
        };
    }
}
