//! Secrets in bodies and documents.

use serde_json::json;

use super::*;

#[test]
fn secrets_in_bodies_are_taken_out_and_nothing_else_is() {
    let redactor = Redactor::default();
    for (media_type, given, expected) in [
        (
            None,
            r#"{"q":"sk-abcdefgh12"}"#,
            Some(r#"{"q":"REDACTED"}"#),
        ),
        (None, r#"{"token":" the","key":"colour"}"#, None),
        (
            None,
            r#"{"access_token": "abc", "user":{"password":"x"}}"#,
            Some(r#"{"access_token": "REDACTED", "user":{"password":"REDACTED"}}"#),
        ),
        (
            None,
            r#"{"arguments":"{\"api_key\":\"abc\",\"n\":1}"}"#,
            Some(r#"{"arguments":"{\"api_key\":\"REDACTED\",\"n\":1}"}"#),
        ),
        (
            None,
            r#"{"OPENAI_API_KEY":"abc"}"#,
            Some(r#"{"OPENAI_API_KEY":"REDACTED"}"#),
        ),
        (
            Some("application/x-www-form-urlencoded; charset=utf-8"),
            "client_id=a&client_secret=b",
            Some("client_id=a&client_secret=REDACTED"),
        ),
        (None, "client_id=a, client_secret=b", None),
        (
            None,
            r#"{"next":"https://h.example/?api_key=abc&n=1\u0026sig=d","q":"a ? token = b"}"#,
            Some(
                r#"{"next":"https://h.example/?api_key=REDACTED&n=1\u0026sig=REDACTED","q":"a ? token = b"}"#,
            ),
        ),
        (
            None,
            r#"{"a":"/go?x=https%3A%2F%2Fh%2F%3Fapi_key%3Dabc&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#,
            Some(
                r#"{"a":"/go?x=https%3A%2F%2Fh%2F%3Fapi_key%3DREDACTED&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#,
            ),
        ),
        (
            Some("text/plain"),
            "GET / HTTP/1.1\r\nX-Api-Key: abc\r\nAuthorization: Bearer x\r\n\r\n",
            Some("GET / HTTP/1.1\r\nX-Api-Key: REDACTED\r\nAuthorization: Bearer REDACTED\r\n\r\n"),
        ),
        (
            Some("application/xml"),
            "<?xml version=\"1.0\"?><a k='1'><password>x</password> <b secret='y'/></a>",
            Some(
                "<?xml version=\"1.0\"?><a k='1'><password>REDACTED</password> <b secret='REDACTED'/></a>",
            ),
        ),
        (
            Some("multipart/form-data; boundary=b"),
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nx\r\n--b--\r\n",
            Some(
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nREDACTED\r\n--b--\r\n",
            ),
        ),
        (
            None,
            r#"{"t":"\u003cpassword\u003ex\u003c/password\u003e"}"#,
            Some(r#"{"t":"\u003cpassword\u003eREDACTED\u003c/password\u003e"}"#),
        ),
    ] {
        let bytes = Bytes::from_static(given.as_bytes());
        let redacted = redactor.body(media_type, &bytes);
        assert_eq!(redacted, expected.unwrap_or(given), "{given}");
        // What is looked up is redacted as what is kept was.
        assert_eq!(redactor.body(media_type, &redacted), redacted, "{given}");
    }
}

#[test]
fn a_key_behind_an_escape_is_taken_out() {
    for (given, expected) in [
        (
            r#"{"q":"see\nsk-abcdefgh12\tend"}"#,
            r#"{"q":"see\nREDACTED\tend"}"#,
        ),
        (
            r#"{"q":"caf\u00e9 \u0073k-abcdefgh12"}"#,
            r#"{"q":"caf\u00e9 REDACTED"}"#,
        ),
        (r#"{"q":"see\nnothing"}"#, r#"{"q":"see\nnothing"}"#),
    ] {
        let redacted = Redactor::default().body(None, &Bytes::from_static(given.as_bytes()));
        assert_eq!(redacted, expected);
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
    let harmless = packed("nothing");
    assert_eq!(Redactor::default().body(None, &harmless), harmless);
    let broken = Bytes::from_static(b"\x1f\x8b\x08 and no more");
    assert_eq!(Redactor::default().body(None, &broken), broken);
}

#[test]
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
        (
            r#"{"you":"correct\/horse","said":"correct/horse!"}"#,
            r#"{"you":"REDACTED","said":"REDACTED!"}"#,
        ),
        ("/echo?got=correct%2Fhorse", "/echo?got=REDACTED"),
        (
            "dXNlcjpiYXR0ZXJ5IHN0YXBsZQ== is battery staple",
            "REDACTED is REDACTED",
        ),
        ("got=battery+staple", "got=REDACTED"),
        (
            "0ld-s3ssion, short, seen in clear, 1",
            "REDACTED, short, seen in clear, 1",
        ),
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
