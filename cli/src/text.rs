//! Reads the text files of users. An error has the place of the first byte that is not UTF-8.

use std::path::Path;

use squall_control_api::environment_variable;
use squall_documents::Variables;
use squall_proxy::user_file;

use crate::failure::Failure;

/// The variables of local files: the process's environment, and files that it names.
pub(crate) fn environment() -> Variables<'static> {
    Variables::From(&environment_variable)
}

/// The argument as a path if it is a file: names of profiles have neither dots nor slashes.
pub(crate) fn as_file(argument: &str) -> Option<&Path> {
    let is_file = argument.contains(['.', '/', '\\']);
    is_file.then_some(Path::new(argument))
}

/// The text of a regular file; the error names the file.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    read_as(file, file)
}

/// The same, with another path in errors.
pub(crate) fn read_as(file: &Path, shown: &Path) -> Result<String, String> {
    let name = shown.display();
    let bytes =
        user_file::read(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let (good, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let good = String::from_utf8_lossy(good);
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(
            "{name}:{line}:{column}: the byte 0x{:02x} is not UTF-8; save the file as UTF-8 text",
            rest.first().copied().unwrap_or_default()
        )
    })
}

/// Errors of a file, one a line.
pub(crate) fn usage(errors: &[impl ToString]) -> Failure {
    Failure::Usage(lines(errors).join("\n"))
}

/// Errors as texts.
pub(crate) fn lines(errors: &[impl ToString]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Fails if there are errors.
pub(crate) fn no_errors(errors: &[String]) -> Result<(), Failure> {
    match errors {
        [] => Ok(()),
        errors => Err(usage(errors)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_place_of_the_first_byte_that_is_not_utf_8() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.yaml");
        std::fs::write(&file, "grün").unwrap();
        assert_eq!(read(&file).unwrap(), "grün");
        std::fs::write(&file, b"a: 1\nb: \xc3\xbc\xff").unwrap();
        let expected = ":2:5: the byte 0xff is not UTF-8; save the file as UTF-8 text";
        assert_eq!(
            read(&file).unwrap_err(),
            format!("{}{expected}", file.display())
        );
    }
}
