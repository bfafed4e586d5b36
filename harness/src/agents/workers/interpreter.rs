//! Selects the Python interpreter that the user would get.

use std::ffi::OsString;
use std::path::Path;

/// In this order: `SQUALL_PYTHON`; the active virtual environment; `.venv` in the suite's folder; `python3`;
/// `python`.
pub(super) fn interpreter(folder: &Path) -> OsString {
    chosen(
        folder,
        |name| std::env::var_os(name).filter(|value| !value.is_empty()),
        Path::is_file,
    )
}

fn chosen(
    folder: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
    is_there: impl Fn(&Path) -> bool,
) -> OsString {
    if let Some(named) = variable("SQUALL_PYTHON") {
        return named;
    }
    let active = variable("VIRTUAL_ENV").map(|active| Path::new(&active).join("bin/python"));
    let beside = folder.join(".venv/bin/python");
    let environment = active
        .into_iter()
        .chain([beside])
        .find(|path| is_there(path));
    if let Some(python) = environment {
        return python.into();
    }
    let path = variable("PATH").unwrap_or_default();
    let on_path = |name: &str| std::env::split_paths(&path).any(|at| is_there(&at.join(name)));
    let found = ["python3", "python"].into_iter().find(|name| on_path(name));
    found.unwrap_or("python3").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn the_nearest_interpreter_is_taken() {
        for (variables, there, expected) in [
            (&[("SQUALL_PYTHON", "/p"), ("VIRTUAL_ENV", "/v")][..], "", "/p"),
            (&[("VIRTUAL_ENV", "/v")], "/v/bin/python", "/v/bin/python"),
            (&[("VIRTUAL_ENV", "/v")], "/s/.venv/bin/python", "/s/.venv/bin/python"),
            (&[("PATH", "/a:/b")], "/b/python", "python"),
            (&[("PATH", "/a:/b")], "/b/python3", "python3"),
            (&[], "", "python3"),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let found = chosen(Path::new("/s"), variable, |path| path == Path::new(there));
            assert_eq!(found, expected, "{variables:?} {there}");
        }
    }
}
