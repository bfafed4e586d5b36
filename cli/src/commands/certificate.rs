//! `squall certificate`: a signed statement of a run's result.

use std::path::Path;

use serde_json::json;
use squall_harness::report::certificate::{self, CertificateFormat, Genuine, SigningKey};
use squall_harness::report::{Report, ReportFormat};
use squall_proxy::user_file;

use crate::args::{CertificateArgs, CertificateCommand};
use crate::failure::Failure;
use crate::home::home;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::{clean, output, run as render};
use crate::reports;

pub(super) async fn run(certificate: CertificateArgs) -> Result<(), Failure> {
    match &certificate.action {
        Some(CertificateCommand::Verify { file, json }) => verify(file, *json),
        None => issue(&certificate).await,
    }
}

/// Signs the report of a run.
async fn issue(args: &CertificateArgs) -> Result<(), Failure> {
    let Some(run) = &args.run else {
        // clap requires it.
        return Err(Failure::Usage("pass the id of a run".to_owned()));
    };
    if let Some(file) = &args.output {
        format_of(file, None)?;
        output_file::check(file)?;
    }
    let report = reports::of_run(&args.store, run, ReportFormat::Json).await?;
    let report =
        Report::read(&report).map_err(|error| Failure::could_not("the daemon's report", error))?;
    let key =
        SigningKey::of_home(&home()?).map_err(|error| Failure::CouldNotRun(error.to_string()))?;
    let of_suite = report.run.certificate_format.as_deref();
    let named = || format!("certificate-{run}.{}", of_suite.unwrap_or("html")).into();
    let file = args.output.clone().unwrap_or_else(named);
    let format = format_of(&file, of_suite)?;
    let tester = args.tester.clone().or(report.run.tester.clone());
    let tester = tester
        .or_else(user)
        .unwrap_or_else(|| "not named".to_owned());
    let signed = certificate::issue(&report, &tester, &report.made_at, &key, format)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    output_file::write(&file, signed)?;
    output::line(&format!(
        "{}: result of run {}, tester {tester}, signed with the key {}",
        file.display(),
        report.run.id,
        key.fingerprint()
    ))
}

/// The format by the file's extension; without one, by the suite of the run.
fn format_of(file: &Path, of_suite: Option<&str>) -> Result<CertificateFormat, Failure> {
    let named = CertificateFormat::of_file(&file.to_string_lossy());
    let named = named.or_else(|| match file.extension() {
        None => CertificateFormat::of_file(&format!(".{}", of_suite.unwrap_or("html"))),
        Some(_) => None,
    });
    named.ok_or_else(|| {
        let file = file.display();
        Failure::Usage(format!(
            "{file}: a certificate is an HTML page or a PDF; end the file's name in `.html` or `.pdf`"
        ))
    })
}

/// The user's name in the environment.
fn user() -> Option<String> {
    let names = ["USER", "USERNAME"].map(|name| std::env::var(name).ok());
    names.into_iter().flatten().find(|name| !name.is_empty())
}

/// Checks the signature of a certificate, and prints what was signed.
fn verify(file: &Path, as_json: bool) -> Result<(), Failure> {
    let bytes = user_file::read(file).map_err(|error| {
        let file = file.display();
        Failure::Usage(format!(
            "{file}: {error}; pass a certificate that `squall certificate RUN --output FILE` wrote"
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
        Ok(genuine) => output::print(&text(file, &genuine, Paint::stdout())),
        Err(error) => {
            let paint = Paint::stderr();
            output::report(&format!(
                "{} {}: {error}",
                paint.bad("squall:"),
                file.display()
            ));
            Err(Failure::NotPassed)
        }
    }
}

fn text(file: &Path, genuine: &Genuine, paint: Paint) -> String {
    let statement = &genuine.statement;
    let score = match statement.score {
        Some(_) => format!("score {} of 100", render::score(statement.score)),
        None => "no score".to_owned(),
    };
    format!(
        "{}: {}\n\n  key     {}\n  tester  {}\n  run     {} ({} {})\n  result  {}, {score}\n  signed  {}\n\n\
         Ask the tester for the key's fingerprint, and compare it.\n",
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
