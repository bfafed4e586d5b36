//! Tests the formats, and that no text changes their structure.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use roxmltree::{Document, ParsingOptions};
use serde_json::{Value, json};

use crate::report::testing::{HOSTILE, closed, fixture};
use crate::report::{Report, ReportFormat, failure_groups, markdown};

#[test]
fn a_report_in_every_form() {
    let report = fixture();
    for (_, format) in ReportFormat::NAMES {
        let text = report.render(*format);
        // The style sheet is not part of the result.
        let text = match (text.split_once("<style>"), text.split_once("</style>")) {
            (Some((before, _)), Some((_, after))) => format!("{before}<style></style>{after}"),
            _ => text,
        };
        insta::assert_snapshot!(format.as_str(), text.replace("><", ">\n<"));
    }
}

/// Members with texts from outside: from agents, models, suites, servers.
const OUTSIDE: [&str; 23] = [
    "needed",
    "name",
    "fault",
    "call",
    "agent",
    "prompt",
    "answer",
    "reason",
    "error",
    "warnings",
    "mutation",
    "invariant",
    "scenario",
    "severity",
    "family",
    "tool",
    "url",
    "method",
    "rule",
    "profile",
    "mode",
    "digest",
    "model",
];

/// The report with `put` before every text from outside.
fn with_everywhere(report: &Report, put: &str) -> Report {
    fn walk(value: &mut Value, outside: bool, put: &str) {
        match value {
            Value::String(text) if outside => *text = format!("{put}{text}"),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, outside, put)),
            Value::Object(members) => {
                for (name, value) in members {
                    walk(value, OUTSIDE.contains(&name.as_str()), put);
                }
            }
            _ => {}
        }
    }
    let mut document = json!(report);
    walk(&mut document, false, put);
    Report::read(&document.to_string()).expect("still a report")
}

/// Elements in order with the names of their attributes, without texts and without inline code.
fn skeleton(markup: &str) -> Vec<String> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let markup = closed(markup);
    let document = Document::parse_with_options(&markup, options).expect("well-formed");
    let is_text = |element: &roxmltree::Node<'_, '_>| {
        let has_more = element.children().any(|child| !child.is_text());
        element.tag_name().name() == "code" && !has_more && element.attributes().len() == 0
    };
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    elements
        .filter(|element| !is_text(element))
        .map(|element| {
            let above = element.ancestors().count();
            let names: Vec<_> = element
                .attributes()
                .map(|attribute| attribute.name())
                .collect();
            format!("{above} {} {}", element.tag_name().name(), names.join(" "))
        })
        .collect()
}

/// The structure of a Markdown document without texts; HTML only from the renderer itself.
fn outline(text: &str) -> Vec<String> {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let events = parser.filter_map(|event| match event {
        Event::Start(Tag::Link { .. } | Tag::Image { .. }) => panic!("a link in {text}"),
        Event::Start(tag) => Some(format!("{tag:?}")),
        Event::Html(html) | Event::InlineHtml(html) => {
            let tag = html.split(['>', ' ']).next().unwrap_or_default().trim();
            Some(tag.to_owned())
        }
        Event::Code(_) => Some("code".to_owned()),
        _ => None,
    });
    events.collect()
}

/// Texts that may have a special meaning in some format.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<",
        ">",
        "&",
        "\"",
        "'",
        "`",
        "```",
        "|",
        "\\",
        "\n",
        "\n\n",
        "\r",
        "]]>",
        "-->",
        "<!--",
        "</style>",
        "</title>",
        "<script>",
        "</script>",
        "#",
        "* ",
        "- ",
        "1. ",
        "~~~",
        "![](x)",
        "[a](b)",
        "https://a.test",
        "@you",
        "#1",
        "\u{0}",
        "\u{1b}[31m",
        "\u{202e}",
        "\u{ffff}",
        "&amp;",
        "&#0;",
        "<details>",
        "</details>",
        "    ",
        "\t",
        "=",
        "---",
        "é",
        "漢",
        "\u{1f980}",
        "a",
        "_",
        "**",
        "$x$",
        "<b",
        "http://",
    ]);
    let piece =
        prop_oneof![3 => pieces.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_text_changes_the_structure_of_a_form(text in any_text()) {
        let report = fixture();
        let (plain, hostile) = (with_everywhere(&report, "x"), with_everywhere(&report, &text));
        for format in [ReportFormat::Html, ReportFormat::Junit] {
            prop_assert_eq!(skeleton(&hostile.render(format)), skeleton(&plain.render(format)));
        }
        let told = hostile.render(ReportFormat::Markdown);
        prop_assert_eq!(outline(&told), outline(&plain.render(ReportFormat::Markdown)));
        let written = hostile.render(ReportFormat::Json);
        prop_assert_eq!(Report::read(&written).expect("reads back"), hostile);
        for (_, format) in ReportFormat::NAMES {
            let told = report.render(*format);
            let obeyed = told.chars().find(|found| found.is_control() && *found != '\n' && *found != '\t');
            prop_assert_eq!(obeyed, None);
        }
    }
}

#[test]
fn a_page_has_no_script_and_no_address_of_elsewhere() {
    let page = closed(&with_everywhere(&fixture(), HOSTILE).render(ReportFormat::Html));
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        let name = element.tag_name().name();
        assert!(
            !["script", "iframe", "object", "embed", "img", "form", "base"].contains(&name),
            "{name}"
        );
        for attribute in element.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(
                !name.starts_with("on") && name != "style" && name != "src",
                "{name}"
            );
            let here = value.starts_with('#') || value == "data:,";
            assert!(name != "href" || here, "{value}");
        }
    }
}

#[test]
fn every_anchor_of_a_page_is_there_and_there_once() {
    let page = closed(&fixture().render(ReportFormat::Html));
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    let attributes = |name: &'static str| {
        document
            .descendants()
            .filter_map(move |element| element.attribute(name))
    };
    let mut ids: Vec<_> = attributes("id").collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is there once");
    let named = attributes("href").filter_map(|href| href.strip_prefix('#'));
    for id in named.chain(attributes("aria-labelledby")) {
        assert!(ids.contains(&id), "{id}");
    }
}

#[test]
fn a_comment_fits_whatever_there_is_to_say() {
    let mut report = fixture();
    let failed = report.run.cells[4].clone();
    for number in 0..2_000 {
        let mut cell = failed.clone();
        cell.invariant = format!("demand-{number}-{}", "|".repeat(200));
        cell.scenario = format!("scenario {}", number % 9);
        cell.evidence[0].prompt = "`&".repeat(4_000);
        report.run.cells.push(cell);
    }
    report.run.name = "n".repeat(100_000);
    report.run.warnings = vec!["w<".repeat(3_000); 3];
    report.failure_groups = failure_groups(&report.run);
    let told = report.render(ReportFormat::Markdown);
    assert!(
        told.chars().count() <= markdown::MOST,
        "{}",
        told.chars().count()
    );
    assert!(told.contains("more in the other forms of this report"));
    assert!(told.ends_with("</sub>\n"), "its end is there");
}

#[test]
fn a_report_that_stands_alone_names_no_other() {
    let mut report = fixture();
    assert!(report.render(ReportFormat::Html).contains("squall report "));
    report.stands_alone = true;
    assert!(!report.render(ReportFormat::Html).contains("squall report "));
}

#[test]
fn a_junit_file_can_be_read_whatever_there_is_to_say() {
    let mut report = fixture();
    let failed = report.run.cells[4].clone();
    for number in 0..1_200 {
        let mut cell = failed.clone();
        cell.invariant = format!("demand-{number}");
        let invocation = &mut cell.evidence[0];
        invocation.answer = Some("<&\"".repeat(22_000));
        invocation.reason = Some("r".repeat(65_000));
        cell.reason = invocation.reason.clone();
        cell.evidence = vec![cell.evidence[0].clone(); 8];
        report.run.cells.push(cell);
    }
    let told = report.render(ReportFormat::Junit);
    assert!(told.len() < 20 << 20, "{}", told.len());
    assert_eq!(told.matches("<testcase ").count(), report.run.cells.len());
    assert!(told.contains("bytes more in the JSON form"));
    assert!(told.contains("3 more invocations in the JSON form"));
    assert!(told.contains("left out here: the JSON form has them"));
    skeleton(&told);
}

#[test]
fn a_wide_matrix_is_told_in_tables_that_paper_holds() {
    let mut report = fixture();
    let cell = report.run.cells[4].clone();
    for (scenarios, expected) in [
        (1, vec![""]),
        (6, vec![""]),
        (7, vec!["Scenarios 1 to 4 of 7.", "Scenarios 5 to 7 of 7."]),
        (
            30,
            vec!["Scenarios 1 to 6 of 30.", "Scenarios 25 to 30 of 30."],
        ),
    ] {
        report.run.cells = (1..=scenarios)
            .map(|number| {
                let mut cell = cell.clone();
                cell.scenario = format!("scenario {number}");
                cell
            })
            .collect();
        let page = report.render(ReportFormat::Html);
        let tables = page.matches("class=\"heat ").count();
        assert_eq!(tables, usize::div_ceil(scenarios, 6), "{scenarios}");
        for which in expected {
            assert!(page.contains(which), "{scenarios}: {which}");
        }
        skeleton(&page);
    }
}

#[test]
fn the_worst_comes_first() {
    let told = fixture().render(ReportFormat::Markdown);
    let place = |text: &str| told.find(text).unwrap_or_else(|| panic!("no {text}"));
    let critical = place("<summary>❌ <code>says-so</code>");
    assert!(critical < place("<summary>❌ <code>completes</code>"));
    assert!(place("<summary>🟥") < place("<summary>⚠️"), "in error last");
}

#[test]
fn a_run_that_proves_nothing_is_no_green_case() {
    use crate::run::RunState;
    let mut report = fixture();
    report.run.cells.clear();
    for (state, expected) in [
        (RunState::Inconclusive, "<error type=\"inconclusive\""),
        (RunState::Errored, "<error type=\"errored\""),
        (RunState::Cancelled, "<skipped message="),
    ] {
        report.run.state = state;
        let told = report.render(ReportFormat::Junit);
        assert!(
            told.contains(expected) && told.contains("tests=\"1\""),
            "{told}"
        );
        skeleton(&told);
        skeleton(&report.render(ReportFormat::Html));
    }
}
