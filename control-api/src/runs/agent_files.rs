//! Digests of the files that an agent is started from: another digest means another agent.

use std::path::{Path, PathBuf};

use squall_harness::agents::settings::{Agent, Way};
use squall_harness::digest::sha256;
use squall_harness::run::DocumentVersion;
use squall_proxy::user_file;

/// Greatest number of files of a command.
const MOST: usize = 16;

/// Characters that end a word in a shell.
const SHELL: &str = ";&|<>()\"'`";

/// The files in the agent's command, also inside words as in `sh -c "python agent.py"`, or its Python module's
/// file. Files that those load are not included. Only agents that this daemon starts have any.
pub(super) fn agent_files(agent: &Agent, folder: &Path) -> Vec<DocumentVersion> {
    let named: Vec<(String, PathBuf)> = match (&agent.way, &agent.start) {
        (Way::Command(words), _) => of_command(words, folder),
        (_, Some(start)) => of_command(&start.command, folder),
        (Way::Python { target, .. }, None) => module(target, folder),
        (Way::Http(_) | Way::OpenAi(_), None) => Vec::new(),
    };
    let files = named.into_iter().filter_map(|(name, path)| {
        Some(DocumentVersion {
            kind: "agent".to_owned(),
            digest: sha256(user_file::read(&path).ok()?),
            name,
            version: None,
            own_version: None,
        })
    });
    files.take(MOST).collect()
}

fn of_command(words: &[String], folder: &Path) -> Vec<(String, PathBuf)> {
    let mut before = "";
    let mut files = Vec::new();
    for word in words {
        let pieces = word.split(|c: char| c.is_whitespace() || SHELL.contains(c));
        let pieces = pieces.filter(|piece| !piece.is_empty() && piece != word);
        for piece in std::iter::once(word.as_str()).chain(pieces) {
            match std::mem::replace(&mut before, piece) {
                // `python -m module`
                "-m" => files.extend(module(piece, folder)),
                _ => files.push((piece.to_owned(), piece.into())),
            }
        }
    }
    files
}

/// Possible files of a module, in order; the first that exists counts.
fn module(target: &str, folder: &Path) -> Vec<(String, PathBuf)> {
    let module = target.split(':').next().unwrap_or_default();
    let inside = module.replace('.', "/");
    let places = [folder, Path::new("")].into_iter().flat_map(|folder| {
        [format!("{inside}.py"), format!("{inside}/__init__.py")]
            .map(|name| (name.clone(), folder.join(name)))
    });
    places.filter(|(_, path)| path.is_file()).take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_every_way_in_which_a_command_names_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("agent.py");
        std::fs::write(&file, "one").expect("written");
        let path = file.to_str().expect("UTF-8");
        let shell = format!("exec python3 {path} $0");
        let quoted = format!("(python3 '{path}'; true)");
        for words in [
            &["python3", path][..],
            &["sh", "-c", &shell, "x"],
            &["sh", "-c", &quoted, "x"],
            &["python3", "-m", "agent"],
        ] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            let files = of_command(&words, folder.path()).into_iter();
            let found: Vec<_> = files
                .filter_map(|(_, path)| user_file::read(&path).ok())
                .collect();
            assert_eq!(found, [b"one"], "{words:?}");
        }
    }
}
