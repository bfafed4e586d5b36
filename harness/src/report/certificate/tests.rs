use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::report::testing::{HOSTILE, closed, fixture};

const WHEN: &str = "2026-11-22T13:00:00.000Z";

fn key() -> SigningKey {
    let home = tempfile::tempdir().expect("a directory");
    SigningKey::of_home(home.path()).expect("a key")
}

fn signed_fixture() -> (Vec<u8>, SigningKey) {
    let key = key();
    let file = issue(&fixture(), "QA, Ada", WHEN, &key).expect("it is over");
    (file, key)
}

#[test]
fn what_was_signed_verifies_and_says_what_the_run_said() {
    let (file, key) = signed_fixture();
    {
        let genuine = verify(&file).unwrap_or_else(|error| panic!("{error}"));
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
        assert_eq!((said.cells.failed, said.cells.baseline_failed), (4, 1));
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
        {
            let file = issue(&report, "QA", WHEN, &key()).expect("it is over");
            let said = verify(&file).expect("genuine").statement;
            assert_eq!((said.min_score, said.state), (least, state));
            assert_eq!(said.passed, Some(passed));
            assert_eq!(said.demands, report.run.demands);
            assert_eq!(said.scenarios, report.run.scenarios);
        }
        let page = issue(&report, "QA", WHEN, &key()).expect("it is over");
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
    let (file, _) = signed_fixture();
    {
        // Every byte outside of the signed parts, and a sample of the long seal and page.
        for at in (0..file.len())
            .step_by(7)
            .chain(0..64)
            .chain(file.len() - 64..file.len())
        {
            let mut changed = file.clone();
            changed[at] ^= 0x01;
            assert!(verify(&changed).is_err(), "byte {at} of {}", file.len());
        }
        for changed in [
            &file[1..],
            &file[..file.len() - 1],
            &[&file[..], b"\n"].concat(),
        ] {
            assert!(verify(changed).is_err());
        }
    }
}

#[test]
fn what_was_changed_is_told() {
    let (file, _) = signed_fixture();
    {
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
        assert_eq!(verify(&with(&better)), Err(NotGenuine::Signature));
        let spaced = seal.replacen(':', ": ", 1);
        assert!(matches!(
            verify(&with(&spaced)),
            Err(NotGenuine::Unreadable(_))
        ));
        let beside = format!("{},\"x\":1}}", &seal[..seal.len() - 1]);
        let beside = verify(&with(&beside)).expect_err("more than was signed");
        assert!(matches!(beside, NotGenuine::Unreadable(_)), "{beside}");
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
    let forged = issue(&fixture(), "QA, Ada", WHEN, &theirs).expect("it is over");
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
        {
            let file = issue(&report, &name, WHEN, &key()).expect("it is over");
            let said = verify(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(said.statement.suite, name);
            {
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
fn a_certificate_is_written_for_people_and_not_in_markdown() {
    let mut report = fixture();
    report.run.agent = None;
    {
        let file = issue(&report, "Ada", WHEN, &key()).expect("it is over");
        let text: String = file.iter().map(|byte| char::from(*byte)).collect();
        assert!(text.contains("certificate verify FILE"));
        assert!(!text.contains('`'));
    }
}

#[test]
fn a_run_that_is_not_over_has_no_certificate() {
    let mut report = fixture();
    report.run.state = RunState::Running;
    let refused = issue(&report, "Ada", WHEN, &key()).expect_err("it runs");
    assert!(
        refused
            .to_string()
            .ends_with("is running; a certificate is of a run that is over")
    );
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
        assert!(matches!(
            SigningKey::of_home(home.path()),
            Err(KeyError::Open { .. })
        ));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
            .expect("it is ours");
    }
    std::fs::write(&file, "no key").expect("it is ours");
    assert!(matches!(
        SigningKey::of_home(home.path()),
        Err(KeyError::NoKey { .. })
    ));
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
