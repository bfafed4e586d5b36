//! `squall ca`: the certificate that programs must trust. Its key is never printed.

use std::path::Path;

use serde_json::json;
use squall_proxy::tls::CertificateAuthority;

use crate::args::CaCommand;
use crate::failure::Failure;
use crate::home::home;
use crate::output_file;
use crate::render::output;

pub(super) fn run(action: CaCommand) -> Result<(), Failure> {
    let home = home()?;
    match action {
        CaCommand::Show { json } => show(&home, json),
        CaCommand::Export { output, bundle } => export(&home, output.as_deref(), bundle),
        CaCommand::Rotate => {
            let ca = CertificateAuthority::rotate(&home)?;
            ca.bundle(&home)?;
            output::line(&format!(
                "a new CA is in {}: {}",
                home.display(),
                ca.subject()
            ))?;
            output::report_line("squall: restart daemons, and give programs the new certificate");
            Ok(())
        }
    }
}

fn show(home: &Path, as_json: bool) -> Result<(), Failure> {
    let ca = CertificateAuthority::load_or_create(home)?;
    let bundle = ca.bundle(home)?;
    let certificate = home.join("ca.pem");
    let validity = ca.validity();
    if as_json {
        return output::json(&json!({
            "subject": ca.subject(),
            "fingerprint_sha256": ca.fingerprint(),
            "certificate": certificate,
            "bundle": bundle.path,
            "system_roots": bundle.system_roots,
            "not_before": validity.not_before.date().to_string(),
            "not_after": validity.not_after.date().to_string(),
        }));
    }
    let mut text = format!(
        "{}\n\n  certificate  {}\n  bundle       {}\n  valid        {} to {}\n  SHA-256      {}\n",
        ca.subject(),
        certificate.display(),
        bundle.path.display(),
        validity.not_before.date(),
        validity.not_after.date(),
        ca.fingerprint(),
    );
    if bundle.system_roots == 0 {
        text.push_str(
            "\nThis system has no trusted roots, so the bundle contains only Squall's CA; install the \
             package `ca-certificates`.\n",
        );
    }
    output::print(&text)
}

fn export(home: &Path, file: Option<&Path>, with_roots: bool) -> Result<(), Failure> {
    let ca = CertificateAuthority::load_or_create(home)?;
    let text = if with_roots {
        let path = ca.bundle(home)?.path;
        std::fs::read_to_string(&path).map_err(|error| Failure::could_not(path.display(), error))?
    } else {
        ca.pem().to_owned()
    };
    match file {
        Some(file) => output_file::write(file, text),
        None => output::document(&text),
    }
}
