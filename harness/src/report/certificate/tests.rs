use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::report::testing::{HOSTILE, closed, fixture};

const WHEN: &str = "2026-11-22T13:00:00.000Z";

fn key() -> SigningKey {
    let home = tempfile::tempdir().expect("a directory");
    SigningKey::of_home(home.path()).expect("a key")
}

fn both() -> [(CertificateFormat, Vec<u8>, SigningKey); 2] {
    [CertificateFormat::Html, CertificateFormat::Pdf].map(|form| {
        let key = key();
        let file = issue(&fixture(), "QA, Ada", WHEN, &key, form).expect("it is over");
        (form, file, key)
    })
}

#[test]
fn what_was_signed_verifies_and_says_what_the_run_said() {
    for (form, file, key) in both() {
        let genuine = verify(&file).unwrap_or_else(|error| panic!("{form:?}: {error}"));
        assert_eq!(genuine.fingerprint, key.fingerprint());
        let said = genuine.statement;
        let run = fixture().run;
        assert_eq!(
            (said.tester.as_str(), said.issued_at.as_str()),
            ("QA, Ada", WHEN)
        );
        assert_eq!(
            (said.score, said.min_score, said.passed),
            (run.score, Some(90.0), Some(false))
        );
        assert_eq!(
            (said.documents, said.coverage),
            (run.documents, run.coverage)
        );
        // Excludes values that depend on the machine's clock or key.
        assert_eq!(verify(&file).expect("again").fingerprint, key.fingerprint());
    }
}

#[test]
fn a_certificate_says_what_was_demanded_and_holds_the_score_to_the_pass_threshold() {
    for (score, threshold, least, state, passed) in [
        (95.0, None, Some(90.0), RunState::Passed, true),
        (95.0, Some(80.0), Some(90.0), RunState::Passed, true),
        (95.0, Some(96.0), Some(96.0), RunState::Failed, false),
    ] {
        let mut report = fixture();
        report.run.state = RunState::Passed;
        report.run.passed = Some(true);
        report.run.score = Some(score);
        report.run.pass_threshold = threshold;
        for form in [CertificateFormat::Html, CertificateFormat::Pdf] {
            let file = issue(&report, "QA", WHEN, &key(), form).expect("it is over");
            let said = verify(&file).expect("genuine").statement;
            assert_eq!((said.min_score, said.state), (least, state));
            assert_eq!(said.passed, Some(passed));
            assert_eq!(said.demands, report.run.demands);
            assert_eq!(said.scenarios, report.run.scenarios);
        }
        let page = issue(&report, "QA", WHEN, &key(), CertificateFormat::Html).expect("it is over");
        let page = String::from_utf8(page).expect("text");
        for part in [
            "Invariant completes",
            "tool_faults: error (down) tool: *",
            "no chaos",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}

/// Flips one bit in each byte: every change must be detected.
#[test]
fn no_byte_of_a_certificate_can_be_changed() {
    for (form, file, _) in both() {
        // Every byte outside of the signed parts, and a sample of the long seal and page.
        for at in (0..file.len())
            .step_by(7)
            .chain(0..64)
            .chain(file.len() - 64..file.len())
        {
            let mut changed = file.clone();
            changed[at] ^= 0x01;
            assert!(
                verify(&changed).is_err(),
                "{form:?}: byte {at} of {}",
                file.len()
            );
        }
        for changed in [
            &file[1..],
            &file[..file.len() - 1],
            &[&file[..], b"\n"].concat(),
        ] {
            assert!(verify(changed).is_err(), "{form:?}");
        }
    }
}

#[test]
fn what_was_changed_is_told() {
    for (form, file, _) in both() {
        let begin = find(&file, BEGIN.as_bytes()).expect("a seal") + BEGIN.len();
        let end = begin + find(&file[begin..], END.as_bytes()).expect("its end");
        let seal = STANDARD.decode(&file[begin..end]).expect("base64");
        let seal = String::from_utf8(seal).expect("JSON");
        let with = |seal: &str| {
            [
                &file[..begin],
                STANDARD.encode(seal).as_bytes(),
                &file[end..],
            ]
            .concat()
        };
        assert!(verify(&with(&seal)).is_ok());
        let better = seal.replace("\"score\":41.666666", "\"score\":91.666666");
        assert_ne!(better, seal);
        assert_eq!(
            verify(&with(&better)),
            Err(NotGenuine::Signature),
            "{form:?}"
        );
        let spaced = seal.replacen(':', ": ", 1);
        assert!(matches!(
            verify(&with(&spaced)),
            Err(NotGenuine::Unreadable(_))
        ));
        let beside = format!("{},\"x\":1}}", &seal[..seal.len() - 1]);
        let beside = verify(&with(&beside)).expect_err("more than was signed");
        assert!(
            matches!(beside, NotGenuine::Unreadable(_)),
            "{form:?}: {beside}"
        );
        let later = seal.replace("\"certificate_version\":1", "\"certificate_version\":2");
        assert_eq!(verify(&with(&later)), Err(NotGenuine::Version(2)));
        assert!(matches!(
            verify(&with("{}")),
            Err(NotGenuine::Unreadable(_))
        ));
        let mut page = file.clone();
        *page.last_mut().expect("a byte") = b' ';
        assert_eq!(verify(&page), Err(NotGenuine::Page));
        assert_eq!(
            verify(&[&file[..], &file[..]].concat()),
            Err(NotGenuine::Seals(2))
        );
    }
    assert_eq!(verify(b""), Err(NotGenuine::Seals(0)));
}

#[test]
fn a_key_of_somebody_else_has_another_fingerprint() {
    let (ours, theirs) = (key(), key());
    let forged = issue(
        &fixture(),
        "QA, Ada",
        WHEN,
        &theirs,
        CertificateFormat::Html,
    )
    .expect("it is over");
    assert_ne!(
        verify(&forged).expect("genuine, of theirs").fingerprint,
        ours.fingerprint()
    );
}

#[test]
fn names_that_mean_harm_make_a_certificate_like_any_other() {
    let mut report = fixture();
    for name in [
        HOSTILE.to_owned(),
        format!("{BEGIN}AAAA{END}"),
        "漢\u{0})(\\".repeat(90),
        String::new(),
    ] {
        report.run.name.clone_from(&name);
        report.run.agent = Some(name.clone());
        for form in [CertificateFormat::Html, CertificateFormat::Pdf] {
            let file = issue(&report, &name, WHEN, &key(), form).expect("it is over");
            let said = verify(&file).unwrap_or_else(|error| panic!("{form:?} {name}: {error}"));
            assert_eq!(said.statement.suite, name);
            if form == CertificateFormat::Html {
                let text = closed(&String::from_utf8(file).expect("text"));
                let options = roxmltree::ParsingOptions {
                    allow_dtd: true,
                    ..Default::default()
                };
                roxmltree::Document::parse_with_options(&text, options).expect("well-formed");
            }
        }
    }
}

#[test]
fn the_objects_of_a_pdf_are_where_its_table_says() {
    let mut report = fixture();
    let document = report.run.documents[0].clone();
    report.run.documents = vec![document; 60];
    let file = issue(&report, "Ada", WHEN, &key(), CertificateFormat::Pdf).expect("it is over");
    let text: String = file.iter().map(|byte| char::from(*byte)).collect();
    let (_, rest) = text.rsplit_once("startxref\n").expect("a table");
    let table: usize = rest
        .lines()
        .next()
        .expect("a line")
        .parse()
        .expect("a number");
    assert!(text[..].len() >= file.len());
    let table = String::from_utf8(file[table..].to_vec()).expect("text");
    let mut lines = table.lines().skip(1);
    let count: usize = lines
        .next()
        .and_then(|line| line.strip_prefix("0 "))
        .expect("a count")
        .parse()
        .expect("a number");
    for number in 1..count {
        let line = table.lines().nth(2 + number).expect("a line");
        let place: usize = line[..10].parse().expect("a place");
        assert!(
            file[place..].starts_with(format!("{number} 0 obj\n").as_bytes()),
            "{number}"
        );
    }
    assert!(table.contains(&format!("/Size {count} ")));
    let pages = places(&file, b"/Type /Page ").count();
    assert!(pages > 1, "60 documents need more than {pages} page");
}

#[test]
fn letters_that_a_pdf_has_no_font_for_are_printed_as_numbers() {
    let text = |tester: &str| -> String {
        let file =
            issue(&fixture(), tester, WHEN, &key(), CertificateFormat::Pdf).expect("it is over");
        file.iter().map(|byte| char::from(*byte)).collect()
    };
    let (plain, other) = (text("Zoë €"), text("Łukasz (東京)"));
    assert!(plain.contains("(Zo\\353 \\200) Tj"), "{plain}");
    let printed = "([U+0141]ukasz \\([U+6771][U+4EAC]\\)) Tj";
    assert!(other.contains(printed), "{other}");
    let note = "Letters that the fonts of this file lack";
    assert_eq!((plain.contains(note), other.contains(note)), (false, true));
}

#[test]
fn a_certificate_is_written_for_people_and_not_in_markdown() {
    let mut report = fixture();
    report.run.agent = None;
    for form in [CertificateFormat::Html, CertificateFormat::Pdf] {
        let file = issue(&report, "Ada", WHEN, &key(), form).expect("it is over");
        let text: String = file.iter().map(|byte| char::from(*byte)).collect();
        assert!(text.contains("certificate verify FILE"), "{form:?}");
        assert!(!text.contains('`'), "{form:?}");
    }
}

#[test]
fn a_run_that_is_not_over_has_no_certificate() {
    let mut report = fixture();
    report.run.state = RunState::Running;
    let refused =
        issue(&report, "Ada", WHEN, &key(), CertificateFormat::Html).expect_err("it runs");
    assert!(
        refused
            .to_string()
            .ends_with("is running; a certificate is of a run that is over")
    );
}

#[test]
fn a_file_s_ending_says_its_form() {
    for (name, form) in [
        ("a.html", Some(CertificateFormat::Html)),
        ("A.PDF", Some(CertificateFormat::Pdf)),
        ("a.txt", None),
        ("pdf", None),
    ] {
        assert_eq!(CertificateFormat::of_file(name), form, "{name}");
    }
}

#[test]
fn a_home_that_is_not_there_is_made() {
    let folder = tempfile::tempdir().expect("a directory");
    SigningKey::of_home(&folder.path().join("new")).expect("a key in a new home");
}

#[test]
fn a_home_has_one_key_which_its_owner_alone_may_read() {
    let home = tempfile::tempdir().expect("a directory");
    let first = SigningKey::of_home(home.path())
        .expect("a key")
        .fingerprint();
    assert_eq!(
        SigningKey::of_home(home.path())
            .expect("the same")
            .fingerprint(),
        first
    );
    let files: Vec<_> = std::fs::read_dir(home.path())
        .expect("a directory")
        .collect();
    assert_eq!(files.len(), 1, "nothing is left beside it");
    let file = home.path().join("certificate-key.pem");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |file| {
            std::fs::metadata(file)
                .expect("a file")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&file), 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))
            .expect("it is ours");
        let error = SigningKey::of_home(home.path()).expect_err("others may read it");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
            .expect("it is ours");
    }
    std::fs::write(&file, "no key").expect("it is ours");
    let error = SigningKey::of_home(home.path()).expect_err("no key");
    assert!(error.to_string().contains("no Ed25519 key"), "{error}");
}

proptest! {
    #[test]
    fn canonical_json_reads_back_as_itself(score in 0.0..=100.0_f64, text in ".*") {
        let value = json!({ "z": score, "a": [text, { "c": null, "b": true }] });
        let written = canonical(&value);
        let read: Value = serde_json::from_str(&written).expect("JSON");
        prop_assert_eq!(canonical(&read), written);
    }
}
