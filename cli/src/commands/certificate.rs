//! `squall certificate`: a signed statement of what a run came to.

use std::path::Path;

use serde_json::json;
use squall_harness::report::certificate::{self, Form, Genuine, SigningKey};
use squall_harness::report::{Format, Report};
use squall_proxy::user_file;

use crate::args::{Certificate, CertificateAction};
use crate::failure::Failure;
use crate::home::home;
use crate::host::Host;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::{clean, output, run as render};
use crate::reports;

pub(super) async fn run(certificate: Certificate) -> Result<(), Failure> {
    match &certificate.action {
        Some(CertificateAction::Verify { file, json }) => verify(file, *json),
        None => issue(&certificate).await,
    }
}

/// Signs the report of a run as it is drawn now.
async fn issue(wanted: &Certificate) -> Result<(), Failure> {
    let Some(run) = &wanted.run else {
        // clap asks for it.
        return Err(Failure::Usage("name a run".to_owned()));
    };
    if let Some(file) = &wanted.output {
        form_of(file, None)?;
        output_file::check(file)?;
    }
    let key =
        SigningKey::of_home(&home()?).map_err(|error| Failure::CouldNotRun(error.to_string()))?;
    let host = Box::pin(Host::open(&wanted.site, None)).await?;
    let drawn = reports::fetch(host.client(), run, Format::Json).await;
    host.close().await;
    let report =
        Report::read(&drawn?).map_err(|error| Failure::could_not("the daemon's report", error))?;
    let form = report.run.certificate_format.as_deref();
    let named = || format!("certificate-{run}.{}", form.unwrap_or("html")).into();
    let file = wanted.output.clone().unwrap_or_else(named);
    let form = form_of(&file, form)?;
    let tester = tester(wanted.tester.as_deref(), report.run.tester.as_deref(), user);
    let signed = certificate::issue(&report, &tester, &report.made_at, &key, form)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    output_file::write(&file, signed)?;
    output::line(&format!(
        "{}: what run {} came to, signed by {tester} with the key {}",
        file.display(),
        report.run.id,
        key.fingerprint()
    ))
}

/// The form that the file's name asks for, else the suite of the run; a name without an ending may be of either.
fn form_of(file: &Path, of_suite: Option<&str>) -> Result<Form, Failure> {
    let named = Form::of_file(&file.to_string_lossy());
    let named = named.or_else(|| match file.extension() {
        None => Form::of_file(&format!(".{}", of_suite.unwrap_or("html"))),
        Some(_) => None,
    });
    named.ok_or_else(|| {
        let file = file.display();
        Failure::Usage(format!(
            "{file}: a certificate is a page or a PDF; end the file's name in `.html` or `.pdf`"
        ))
    })
}

/// Who signs: whom the command names, else whom the run's suite does, else who is at work here.
fn tester(
    named: Option<&str>,
    of_suite: Option<&str>,
    user: impl Fn() -> Option<String>,
) -> String {
    let named = named.or(of_suite).map(str::to_owned);
    named
        .or_else(user)
        .unwrap_or_else(|| "not named".to_owned())
}

/// Who is at work here: as the environment says, else as the machine's list of users does, which also
/// knows a container's.
fn user() -> Option<String> {
    let named = ["USER", "USERNAME"].map(|name| std::env::var(name).ok());
    let named = named.into_iter().flatten().find(|name| !name.is_empty());
    named.or_else(|| {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        name_of(rustix::process::getuid().as_raw(), &users)
    })
}

/// The name of a user by number, in a list of users as passwd(5) has it.
fn name_of(number: u32, users: &str) -> Option<String> {
    let mut names = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, of) = (fields.next()?, fields.nth(1)?);
        (of.parse() == Ok(number) && !name.is_empty()).then(|| name.to_owned())
    });
    names.next()
}

/// Says whether a certificate is what was signed, and by which key.
fn verify(file: &Path, as_json: bool) -> Result<(), Failure> {
    let bytes = user_file::read(file).map_err(|error| {
        let file = file.display();
        Failure::Usage(format!(
            "{file}: {error}; name a certificate, as `squall certificate RUN --output FILE` writes it"
        ))
    })?;
    let verified = certificate::verify(&bytes);
    if as_json {
        output::json(&match &verified {
            Ok(genuine) => {
                json!({ "file": file, "genuine": true, "fingerprint": genuine.fingerprint,
                                   "statement": genuine.statement })
            }
            Err(error) => json!({ "file": file, "genuine": false, "error": error.to_string() }),
        })?;
    }
    match verified {
        Ok(_) if as_json => Ok(()),
        Ok(genuine) => output::print(&told(file, &genuine, Paint::stdout())),
        // Also where there is no seal: it may be the seal's mark that was changed.
        Err(error) => {
            let paint = Paint::stderr();
            output::tell(&format!(
                "{} {}: {error}",
                paint.bad("squall:"),
                file.display()
            ));
            Err(Failure::NotPassed)
        }
    }
}

fn told(file: &Path, genuine: &Genuine, paint: Paint) -> String {
    let statement = &genuine.statement;
    let score = match statement.score {
        Some(_) => format!("score {} of 100", render::score(statement.score)),
        None => "no score".to_owned(),
    };
    format!(
        "{}: {}\n\n  key     {}\n  tester  {}\n  run     {} ({} {})\n  result  {}, {score}\n  signed  {}\n\n\
         compare the key with the one that the tester names\n",
        file.display(),
        paint.good("genuine"),
        genuine.fingerprint,
        clean(&statement.tester, 80),
        clean(&statement.run, 40),
        statement.kind.as_str(),
        clean(&statement.suite, 60),
        render::state(statement.state, paint),
        clean(&statement.issued_at, 40),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_signs() {
        let user = || Some("ada".to_owned());
        for (named, of_suite, expected) in [
            (Some("Quality"), Some("Suite Ltd"), "Quality"),
            (None, Some("Suite Ltd"), "Suite Ltd"),
            (None, None, "ada"),
        ] {
            assert_eq!(tester(named, of_suite, user), expected);
        }
        assert_eq!(tester(None, None, || None), "not named");
    }

    #[test]
    fn a_user_without_variables_is_named_by_number() {
        let users = "root:x:0:0:root:/root:/bin/bash\n+nis\nada:x:1000:1000::/home/ada:/bin/sh\n";
        for (number, name) in [(0, Some("root")), (1000, Some("ada")), (7, None)] {
            assert_eq!(name_of(number, users).as_deref(), name);
        }
    }
}
