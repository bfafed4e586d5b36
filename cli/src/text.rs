//! Reads the text files of users. An error has the place of the first byte that is not UTF-8.

use std::io;
use std::path::Path;

use squall_documents::Position;
use squall_documents::Variables;
use squall_proxy::user_file;

/// The variables of local files: the process's environment.
pub(crate) fn environment() -> Variables<'static> {
    Variables::From(&|name| std::env::var(name))
}

/// The argument as a path if it is a file: names of profiles have neither dots nor slashes.
pub(crate) fn as_file(argument: &str) -> Option<&Path> {
    let is_file = argument.contains(['.', '/', '\\']);
    is_file.then_some(Path::new(argument))
}

/// Why a file could not be read as text.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The first byte that is not UTF-8.
    at: Option<Position>,
    why: String,
}

impl Unreadable {
    /// For another reason.
    pub(crate) fn because(why: String) -> Self {
        Self { at: None, why }
    }

    /// The error message about `file`.
    pub(crate) fn in_file(&self, file: &Path) -> String {
        let (file, why) = (file.display(), &self.why);
        match self.at {
            Some(Position { line, column }) => format!("{file}:{line}:{column}: {why}"),
            None => format!("{file}: {why}"),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self {
            at: None,
            why: format!("cannot be read: {error}"),
        }
    }
}

/// The text of a regular file.
pub(crate) fn read(file: &Path) -> Result<String, Unreadable> {
    text_of(user_file::read(file)?)
}

fn text_of(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|error| {
        let (good, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let good = String::from_utf8_lossy(good);
        let line = good.rsplit('\n').next().unwrap_or_default();
        let count = |before: usize| u32::try_from(before + 1).unwrap_or(u32::MAX);
        Unreadable {
            at: Some(Position {
                line: count(good.matches('\n').count()),
                column: count(line.chars().count()),
            }),
            why: format!(
                "the byte 0x{:02x} is not UTF-8; save the file as UTF-8 text",
                rest.first().copied().unwrap_or_default()
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_place_of_the_first_byte_that_is_not_utf_8() {
        assert_eq!(text_of("grün".into()).unwrap(), "grün");
        let error = text_of(b"a: 1\nb: \xc3\xbc\xff".to_vec()).unwrap_err();
        assert_eq!(
            error.in_file(Path::new("x.yaml")),
            "x.yaml:2:5: the byte 0xff is not UTF-8; save the file as UTF-8 text"
        );
        assert!(read(Path::new("/nonexistent")).unwrap_err().at.is_none());
    }
}
