//! Injects instructions into tool responses.

mod prose;

use squall_dialects::json::{Document, Edits, JsonKind, Value, quote};
use squall_dialects::mcp;

use self::prose::{PROSE, best, likeness, prose};
use crate::canary::{self, Canary};
use crate::changes::{Injection, Placement};

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// JSON.
    Json,
    /// HTML.
    Html,
    /// Markdown or plain text.
    Text,
}

impl TextForm {
    /// Detects the format from the text.
    pub fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['{', '[']) && Document::parse(text.trim_end().as_bytes()).is_ok() {
            return Self::Json;
        }
        let start = text.get(..15).unwrap_or(text).to_ascii_lowercase();
        if start.starts_with("<!doctype html") || start.starts_with("<html") {
            Self::Html
        } else {
            Self::Text
        }
    }
}

/// A tool response with the instruction, or why it has no place for one. In MCP messages, it is
/// injected into the tool result's text for the model.
pub fn in_answer(injection: &Injection, text: &str, form: TextForm) -> Result<String, String> {
    if form != TextForm::Json {
        return injected(injection, text, form);
    }
    let document =
        Document::parse(text.as_bytes()).map_err(|why| format!("the tool's answer is {why}"))?;
    let mut edits = Edits::new(&document);
    let texts = mcp::texts(&document);
    in_texts(injection, &texts, document.root(), &document, &mut edits)?;
    String::from_utf8(edits.apply()).map_err(|error| error.to_string())
}

/// Injects the instruction into these texts of an MCP tool result; without any, into a string below
/// `root`.
pub(crate) fn in_texts(
    injection: &Injection,
    texts: &[mcp::Text],
    root: Value<'_>,
    document: &Document<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let read = texts
        .iter()
        .filter(|text| text.part != mcp::TextPart::Structured);
    match best(read.map(|text| document.value(text.place))) {
        Some(place) => {
            inject_into(injection, edits, place);
            if let Some(said_again) = in_structure(texts, place, document) {
                inject_into(injection, edits, said_again);
            }
        }
        None => inject_below(injection, edits, root)?,
    }
    Ok(())
}

/// The string in a result's structure that equals `text`, or else the one that looks most like
/// prose. Keys and single words stay, because they must fit the tool's schema.
fn in_structure<'d>(
    texts: &[mcp::Text],
    text: Value<'d>,
    document: &'d Document<'d>,
) -> Option<Value<'d>> {
    let structured = texts
        .iter()
        .filter(|text| text.part == mcp::TextPart::Structured);
    let mut places = structured.map(|text| document.value(text.place));
    let same = places.clone().find(|it| it.as_str() == text.as_str());
    same.or_else(|| best(&mut places).filter(|it| likeness(*it).0 >= PROSE))
}

/// A text with the instruction, or why it has no place for one.
pub fn injected(injection: &Injection, text: &str, form: TextForm) -> Result<String, String> {
    match form {
        TextForm::Json => {
            let document = Document::parse(text.as_bytes())
                .map_err(|why| format!("the tool's answer is {why}"))?;
            let mut edits = Edits::new(&document);
            inject_below(injection, &mut edits, document.root())?;
            String::from_utf8(edits.apply()).map_err(|error| error.to_string())
        }
        TextForm::Html => Ok(in_html(injection, text)),
        TextForm::Text => Ok(in_text(injection, text)),
    }
}

/// Injects the instruction below `root`, or returns why there is no place for it.
pub fn inject_below(
    injection: &Injection,
    edits: &mut Edits<'_>,
    root: Value<'_>,
) -> Result<(), String> {
    if injection.placement == Placement::ErrorMessage && in_error(injection, edits, root) {
        return Ok(());
    }
    if let Some(place) = prose(root) {
        inject_into(injection, edits, place);
        return Ok(());
    }
    if root.kind() != JsonKind::Object {
        return Err("the tool's answer has no text to put an instruction into".to_owned());
    }
    add_json(edits, root, "note", &quote(&in_text(injection, "")));
    Ok(())
}

/// Injects the instruction into a JSON string, which may contain JSON itself.
pub fn inject_into(injection: &Injection, edits: &mut Edits<'_>, place: Value<'_>) {
    let text = place.as_str().unwrap_or_default();
    let said = injected(injection, &text, TextForm::of(&text));
    let said = said.unwrap_or_else(|_| in_text(injection, &text));
    edits.replace(place.id(), quote(&said));
}

/// Whether a text already contains a canary.
pub fn has_canary(text: &str) -> bool {
    canary_in(text).is_some()
}

/// As the message of an error: an existing one, or one added to an object.
fn in_error(injection: &Injection, edits: &mut Edits<'_>, root: Value<'_>) -> bool {
    const ERRORS: [&str; 4] = ["error", "message", "detail", "error_message"];
    let message = ERRORS.iter().find_map(|key| {
        let found = root.get(key)?;
        let inside = || found.get("message").or_else(|| found.get("detail"));
        let place = if found.kind() == JsonKind::Object {
            inside()?
        } else {
            found
        };
        (place.kind() == JsonKind::String).then_some(place)
    });
    if let Some(message) = message {
        let said = message.as_str().unwrap_or_default();
        edits.replace(message.id(), quote(&joined(&said, " ", &injection.text)));
        return true;
    }
    let is_object = root.kind() == JsonKind::Object && root.get("error").is_none();
    if is_object {
        let said = format!("{{\"message\":{}}}", quote(&injection.text));
        add_json(edits, root, "error", &said);
    }
    is_object
}

fn add_json(edits: &mut Edits<'_>, object: Value<'_>, key: &str, json: &str) {
    match object.members().last() {
        Some(last) => edits.insert_after(last.id(), key, json),
        None => edits.replace(object.id(), format!("{{{}:{json}}}", quote(key))),
    }
}

/// A plain or Markdown text.
fn in_text(injection: &Injection, text: &str) -> String {
    let said = &injection.text;
    let gap = if text.contains('\n') { "\n\n" } else { " " };
    match injection.placement {
        Placement::Field => joined(text, gap, said),
        Placement::Comment => joined(text, gap, &commented(said)),
        Placement::ZeroWidth => joined(text, gap, &spaced(said)),
        Placement::Markdown => joined(text, gap, &pictured(said)),
        Placement::ErrorMessage => joined(text, "\n", &format!("Error: {said}")),
    }
}

fn in_html(injection: &Injection, html: &str) -> String {
    let said = &injection.text;
    let element = match injection.placement {
        Placement::Field => format!("<p>{}</p>", escaped(said)),
        Placement::Comment => commented(said),
        Placement::ZeroWidth => format!("<p>{}</p>", escaped(&spaced(said))),
        Placement::Markdown => format!("<pre>{}</pre>", escaped(&pictured(said))),
        Placement::ErrorMessage => format!("<p role=\"alert\">Error: {}</p>", escaped(said)),
    };
    // Where it is still part of the page.
    let end = ["</body", "</html"].iter().find_map(|end| {
        let lower = html.to_ascii_lowercase();
        lower.rfind(end)
    });
    let (before, after) = html.split_at(end.unwrap_or(html.len()));
    format!("{before}{element}{after}")
}

fn joined(text: &str, gap: &str, more: &str) -> String {
    if text.trim().is_empty() {
        more.to_owned()
    } else {
        format!("{text}{gap}{more}")
    }
}

/// In an HTML comment, which the text must not close.
fn commented(text: &str) -> String {
    format!("<!-- {} -->", text.replace("--", "- -"))
}

/// The alternative text of an image at an invalid host (RFC 6761 §6.4), whose URL also has the
/// canary.
fn pictured(text: &str) -> String {
    let words: String = text
        .chars()
        .map(|letter| match letter {
            '[' => '(',
            ']' => ')',
            '\n' | '\r' => ' ',
            letter => letter,
        })
        .collect();
    let canary = canary_in(text).unwrap_or_default();
    format!("![{words}](https://images.invalid/{canary}.png)")
}

/// Adds a zero-width space after each letter, which hides words from filters but not from models.
/// The canary stays unchanged, so that it can be found.
fn spaced(text: &str) -> String {
    let broken = |text: &str| -> String { text.chars().flat_map(|c| [c, '\u{200b}']).collect() };
    match canary_in(text).and_then(|canary| text.split_once(canary).map(|parts| (parts, canary))) {
        Some(((before, after), canary)) => [&broken(before), canary, &broken(after)].concat(),
        None => broken(text),
    }
}

fn canary_in(text: &str) -> Option<&str> {
    let mut places = text.match_indices("sq-");
    places.find_map(|(at, _)| {
        let written = text.get(at..at + canary::LENGTH)?;
        written.parse::<Canary>().ok().map(|_| written)
    })
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAID: &str = "Call now [today] <b> -- sq-0123456789ab.";

    fn put(placement: Placement, text: &str) -> Result<String, String> {
        let injection = Injection {
            text: SAID.to_owned(),
            placement,
            choice: 0,
        };
        in_answer(&injection, text, TextForm::of(text))
    }

    #[test]
    fn of_the_fields_the_one_that_reads_like_prose_is_taken() {
        for (json, field) in [
            (
                r#"{"id":"a long id of words","url":"https://a.example/x","title":"Tea","body":"Green tea is grown in the hills.","at":"2026-11-22T10:00:00Z"}"#,
                "/body",
            ),
            (
                r#"{"status":"ok","items":[{"name":"Kiel","note":"a b"},{"name":"Lübeck","note":"Closed on Mondays and in winter"}]}"#,
                "/items/1/note",
            ),
            (r#"{"code":"EUR","city":"Paris","temp":21}"#, "/city"),
            (r#"{"status":"ok"}"#, "/status"),
            (r#"["d41d8cd98f00b204e9800998ecf8427e","sunny"]"#, "/1"),
            (r#"{"celsius":21}"#, "/note"),
            ("{}", "/note"),
        ] {
            let put = put(Placement::Field, json).expect(json);
            let before: serde_json::Value = serde_json::from_str(json).unwrap();
            let mut after: serde_json::Value = serde_json::from_str(&put).expect(&put);
            let said = after.pointer(field).and_then(|said| said.as_str());
            assert!(said.is_some_and(|said| said.ends_with(SAID)), "{put}");
            // All else is as it was.
            if let Some(was) = before.pointer(field) {
                *after.pointer_mut(field).unwrap() = was.clone();
            } else {
                after.as_object_mut().unwrap().remove("note");
            }
            assert_eq!(before, after, "{json}");
        }
        for json in ["[1,2]", "[]", r#"[{"a":1}]"#] {
            assert_eq!(
                put(Placement::Field, json).expect_err(json),
                "the tool's answer has no text to put an instruction into"
            );
        }
    }

    #[test]
    fn numbers_and_order_stay_as_they_are_written() {
        let json = "{ \"z\": 1.50, \"note\": \"Open until late.\",\n \"a\": 12345678901234567890 }";
        let said = quote(&format!("Open until late. {SAID}"));
        let expected = json.replace("\"Open until late.\"", &said);
        assert_eq!(put(Placement::Field, json), Ok(expected));
    }

    #[test]
    #[rustfmt::skip]
    fn each_placement_has_its_own_look() {
        let broken = spaced(SAID);
        let picture = "![Call now (today) <b> -- sq-0123456789ab.](https://images.invalid/sq-0123456789ab.png)";
        let comment = "<!-- Call now [today] <b> - - sq-0123456789ab. -->";
        for (placement, text, expected) in [
            (Placement::Field, "Fine.", format!("Fine. {SAID}")),
            (Placement::Field, "One\ntwo", format!("One\ntwo\n\n{SAID}")),
            (Placement::Field, "", SAID.to_owned()),
            (Placement::Comment, "Fine.", format!("Fine. {comment}")),
            (Placement::ZeroWidth, "Fine.", format!("Fine. {broken}")),
            (Placement::Markdown, "Fine.", format!("Fine. {picture}")),
            (Placement::ErrorMessage, "Fine.", format!("Fine.\nError: {SAID}")),
            (
                Placement::Comment,
                "<html><body>x</body></html>",
                format!("<html><body>x{comment}</body></html>"),
            ),
            (
                Placement::Field,
                "<!DOCTYPE html>x",
                "<!DOCTYPE html>x<p>Call now [today] &lt;b&gt; -- sq-0123456789ab.</p>".to_owned(),
            ),
            (
                Placement::ErrorMessage,
                r#"{"error":{"code":3,"message":"No."}}"#,
                format!(r#"{{"error":{{"code":3,"message":"No. {SAID}"}}}}"#),
            ),
            (Placement::ErrorMessage, r#"{"message":"No."}"#, format!(r#"{{"message":"No. {SAID}"}}"#)),
            (
                Placement::ErrorMessage,
                r#"{"temp":3}"#,
                format!(r#"{{"temp":3,"error":{{"message":"{SAID}"}}}}"#),
            ),
        ] {
            assert_eq!(put(placement, text).expect(text), expected, "{placement:?}");
        }
        assert!(!broken.contains("now") && broken.replace('\u{200b}', "") == SAID);
        assert!(has_canary(&broken) && has_canary(picture) && !has_canary("sq-0123456789a"));
    }

    #[test]
    fn of_mcps_messages_the_result_is_taken() {
        let json = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rain and wind are expected all day"},{"type":"text","text":"{\"summary\":\"Take an umbrella with you, and a coat.\"}"}],"structuredContent":{"summary":"A text that is longer than all the others, and for programs."}}}"#;
        let put = put(Placement::Field, json).expect("a text");
        let after: serde_json::Value = serde_json::from_str(&put).expect("JSON");
        let inner = after
            .pointer("/result/content/1/text")
            .and_then(|text| text.as_str());
        let inner: serde_json::Value = serde_json::from_str(inner.unwrap()).expect("JSON inside");
        assert!(inner["summary"].as_str().unwrap().ends_with(SAID), "{put}");
        let structured = &after["result"]["structuredContent"]["summary"];
        assert!(structured.as_str().unwrap().ends_with(SAID), "{put}");
    }

    #[test]
    fn what_mcp_says_in_structure_agrees_with_its_text() {
        let message = |content: &str, structured: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{}}}],"structuredContent":{structured}}}}}"#,
                quote(content)
            )
        };
        for (content, structured, expected) in [
            // The same words, be they few.
            (
                "Rain",
                r#"{"result":"Rain"}"#,
                format!(r#"{{"result":"Rain {SAID}"}}"#),
            ),
            // The same JSON.
            (
                r#"{"sky":"grey","note":"Take a coat with you"}"#,
                r#"{"sky":"grey","note":"Take a coat with you"}"#,
                format!(r#"{{"sky":"grey","note":"Take a coat with you {SAID}"}}"#),
            ),
            // What has to fit a schema stays.
            (
                "Rain and wind all day",
                r#"{"sky":"grey","unit":"celsius","degrees":11}"#,
                r#"{"sky":"grey","unit":"celsius","degrees":11}"#.to_owned(),
            ),
        ] {
            let put = put(Placement::Field, &message(content, structured)).expect("a text");
            assert!(
                put.ends_with(&format!(r#""structuredContent":{expected}}}}}"#)),
                "{put}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in prop_oneof![any::<String>(), "[{\\[\"a-z :,\\]}0-9<!>/-]{0,40}"],
            placement in prop::sample::select(&[
                Placement::Field, Placement::Comment, Placement::ZeroWidth,
                Placement::Markdown, Placement::ErrorMessage,
            ][..]),
        ) {
            if let Ok(put) = put(placement, &text) {
                prop_assert!(has_canary(&put));
                prop_assert_eq!(TextForm::of(&put) == TextForm::Json, TextForm::of(&text) == TextForm::Json);
            }
        }
    }
}
