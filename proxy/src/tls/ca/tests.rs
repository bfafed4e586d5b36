use std::os::unix::fs::PermissionsExt;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A home directory that does not exist yet, and what keeps it from staying.
fn new_home() -> (PathBuf, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    (scratch.path().join("deep/squall"), scratch)
}

#[test]
fn the_first_start_makes_a_ca_that_stays() {
    let (home, _scratch) = new_home();
    let first = CertificateAuthority::load_or_create(&home).unwrap();
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("ca.key")), 0o600);
    assert_eq!(mode(&home.join("ca.pem")), 0o644);
    let second = CertificateAuthority::load_or_create(&home).unwrap();
    assert_eq!(first.pem(), second.pem());
    assert_eq!(first.fingerprint().len(), 32 * 3 - 1);
    assert!(
        first.subject().starts_with("O=Squall, CN=Squall CA "),
        "{}",
        first.subject()
    );
    let life = first.validity().not_after - first.validity().not_before;
    assert_eq!(life.whole_days(), 5 * 365 + 2);
    // No temporary file is left behind.
    assert_eq!(names_in(&home), ["ca.key", "ca.lock", "ca.pem"]);
}

fn names_in(home: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(home).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn those_that_start_at_once_get_one_ca() {
    let (home, _scratch) = new_home();
    let fingerprints: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| CertificateAuthority::load_or_create(&home).unwrap()))
            .collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap().fingerprint())
            .collect()
    });
    assert!(
        fingerprints.iter().all(|one| *one == fingerprints[0]),
        "{fingerprints:?}"
    );
}

#[test]
fn those_that_start_during_rotations_get_a_pair_that_fits() {
    let (home, _scratch) = new_home();
    CertificateAuthority::load_or_create(&home).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                CertificateAuthority::rotate(&home).unwrap();
            }
        });
        for _ in 0..100 {
            CertificateAuthority::load_or_create(&home).unwrap();
        }
    });
}

#[test]
fn a_rotation_makes_another_ca() {
    let (home, _scratch) = new_home();
    let old = CertificateAuthority::load_or_create(&home).unwrap();
    let new = CertificateAuthority::rotate(&home).unwrap();
    assert_ne!(old.fingerprint(), new.fingerprint());
    assert_ne!(old.subject(), new.subject());
    let loaded = CertificateAuthority::load_or_create(&home).unwrap();
    assert_eq!(loaded.fingerprint(), new.fingerprint());
}

#[test]
fn a_rotation_that_was_killed_leaves_a_pair_that_fits_and_no_other_key() {
    for (files_written, takes_the_new_one) in [(1, false), (2, true), (3, true)] {
        let (home, _scratch) = new_home();
        let (other, _scratch) = new_home();
        let old = CertificateAuthority::load_or_create(&home).unwrap();
        let new = CertificateAuthority::load_or_create(&other).unwrap();
        let key = fs::read_to_string(other.join("ca.key")).unwrap();
        let steps = [
            ("ca.next", key.as_str()),
            ("ca.key", key.as_str()),
            ("ca.pem", new.pem()),
        ];
        for (name, content) in steps.into_iter().take(files_written) {
            files::replace(&home.join(name), content.as_bytes(), files::PRIVATE).unwrap();
        }
        if files_written > 1 {
            // It was renamed.
            fs::remove_file(home.join("ca.next")).unwrap();
        }
        let loaded = CertificateAuthority::load_or_create(&home).unwrap();
        let expected = if takes_the_new_one { &new } else { &old };
        assert_eq!(loaded.pem(), expected.pem(), "{files_written}");
        assert_eq!(names_in(&home), ["ca.key", "ca.lock", "ca.pem"]);
    }
}

#[test]
fn a_certificate_that_is_gone_comes_back_from_its_keys_file() {
    let (home, _scratch) = new_home();
    let old = CertificateAuthority::load_or_create(&home).unwrap();
    fs::remove_file(home.join("ca.pem")).unwrap();
    let again = CertificateAuthority::load_or_create(&home).unwrap();
    assert_eq!(old.pem(), again.pem());
}

/// What loading `home` fails with, without the changing part of the path.
fn refusal(home: &Path) -> String {
    let error = CertificateAuthority::load_or_create(home)
        .unwrap_err()
        .to_string();
    error.replace(&*home.to_string_lossy(), "HOME")
}

#[test]
fn every_refusal_says_what_to_do() {
    let (home, _scratch) = new_home();
    CertificateAuthority::load_or_create(&home).unwrap();
    let (certificate, key) = (home.join("ca.pem"), home.join("ca.key"));
    let (good_certificate, good_key) = (
        fs::read_to_string(&certificate).unwrap(),
        fs::read_to_string(&key).unwrap(),
    );

    set_mode(&key, 0o640);
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.key can be read by other users, who could then sign for any host; run `chmod 600 HOME/ca.key`");
    set_mode(&key, 0o600);

    fs::write(
        &key,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    )
    .unwrap();
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.key holds no usable private key: Could not parse key pair; it must be unencrypted PKCS #8 in PEM (convert it with `openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW`)");

    fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.key is not the key of the certificate in HOME/ca.pem");

    fs::remove_file(&key).unwrap();
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.pem is there, but its key HOME/ca.key is not; put the key back, or run `squall ca rotate` for a new pair");

    fs::write(&key, &good_key).unwrap();
    set_mode(&key, 0o600);
    fs::write(&certificate, "not a certificate").unwrap();
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.pem holds no certificate: no PEM block in it; it must be X.509 in PEM");

    let own = KeyPair::from_pem(&good_key).unwrap();
    let mut params = new_root(wall_clock());
    params.is_ca = IsCa::ExplicitNoCa;
    fs::write(&certificate, params.self_signed(&own).unwrap().pem()).unwrap();
    insta::assert_snapshot!(refusal(&home), @"HOME/ca.pem is not a CA's certificate (basicConstraints lacks CA:TRUE)");

    let old = new_root(SystemTime::UNIX_EPOCH + BACK_DATE);
    fs::write(&certificate, old.self_signed(&own).unwrap().pem()).unwrap();
    insta::assert_snapshot!(refusal(&home), @"the CA certificate HOME/ca.pem expired on 1975-01-02; run `squall ca rotate`, or give another one");

    fs::write(&certificate, good_certificate).unwrap();
    CertificateAuthority::load_or_create(&home).unwrap();
}

#[test]
fn a_ca_of_the_users_own_is_taken_as_it_is() {
    let (home, _scratch) = new_home();
    let made = CertificateAuthority::load_or_create(&home).unwrap();
    let (certificate, key) = (home.join("ca.pem"), home.join("ca.key"));
    set_mode(&key, 0o640);
    let own = CertificateAuthority::load(&certificate, &key).unwrap();
    assert_eq!(own.fingerprint(), made.fingerprint());
    assert_eq!(own.intermediates(), &[]);
    set_mode(&key, 0o644);
    let error = CertificateAuthority::load(&certificate, &key).unwrap_err();
    assert!(matches!(error, CaError::Exposed { .. }), "{error}");
    let error = CertificateAuthority::load(&home.join("none.pem"), &key).unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}

#[test]
fn an_intermediate_is_sent_with_its_chain() {
    let (home, _scratch) = new_home();
    let root = CertificateAuthority::load_or_create(&home).unwrap();
    let key = KeyPair::generate().unwrap();
    let signed = new_root(wall_clock())
        .signed_by(&key, root.issuer())
        .unwrap();
    let (certificate, key_path) = (home.join("own.pem"), home.join("own.key"));
    fs::write(&certificate, format!("{}{}", signed.pem(), root.pem())).unwrap();
    files::replace(&key_path, key.serialize_pem().as_bytes(), files::PRIVATE).unwrap();
    let own = CertificateAuthority::load(&certificate, &key_path).unwrap();
    assert_eq!(
        own.intermediates(),
        &[signed.der().clone(), root.certificate().clone()]
    );
}

#[test]
fn the_bundle_holds_the_ca_behind_the_systems_roots() {
    let (home, _scratch) = new_home();
    let authority = CertificateAuthority::load_or_create(&home).unwrap();
    let bundle = authority.bundle(&home).unwrap();
    assert_eq!(bundle.path, home.join("ca-bundle.pem"));
    let text = fs::read_to_string(&bundle.path).unwrap();
    assert!(text.ends_with(authority.pem()));
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(certificates.len(), bundle.system_roots + 1);

    let written = fs::metadata(&bundle.path).unwrap().modified().unwrap();
    assert_eq!(authority.bundle(&home).unwrap(), bundle);
    assert_eq!(
        fs::metadata(&bundle.path).unwrap().modified().unwrap(),
        written
    );
}

#[test]
fn a_lock_that_is_a_pipe_is_not_waited_for() {
    let (home, _scratch) = new_home();
    fs::create_dir_all(&home).unwrap();
    let lock = home.join("ca.lock");
    let made = std::process::Command::new("mkfifo").arg(&lock).status();
    assert!(made.unwrap().success());
    let error = refusal(&home);
    assert!(error.contains("ca.lock: it is no regular file"), "{error}");
}
