//! Files that a suite names: a contract, replay sessions, JSON Schemas.
//!
//! Each is laid behind the suite's text and its tree put where its name stood, lines counted on. So
//! everything that looks at a suite sees one document, and only what is said of it in the end is led back
//! to the file and the line it stands in.
//!
//! ```text
//! suite.yaml  1 ..  40      contract: ./contract.yaml ─▶ the tree of 41 .. 60
//! contract.yaml ─▶ 41 .. 60
//! ```

use squall_profiles::document::{self, At, Tree};
use squall_profiles::error::{Position, ProfileError};
use squall_profiles::variables::{Variables, expand};

/// Gives a file that another one names: what it is called in errors, and its text. The error is a sentence
/// without the place.
pub type Open<'f> = &'f dyn Fn(&str, &str) -> Result<(String, String), String>;

/// Texts laid one behind the other.
#[derive(Debug)]
pub(super) struct Laid {
    /// All of them.
    pub(super) text: String,
    /// The first line of each, and what it is called.
    files: Vec<(u32, String)>,
    /// Files that cannot be had, or are no documents: where their names stand, and what is wrong.
    unread: Vec<(Position, ProfileError)>,
}

/// Reads a suite, and puts the files that it names in their places.
pub(super) fn read(
    file: &str,
    text: &str,
    variables: Variables<'_>,
    open: Option<Open<'_>>,
) -> Result<(Laid, At<Tree>), Vec<ProfileError>> {
    let mut laid = Laid::alone(file, text);
    let mut tree = document::read(file, text).map_err(|error| vec![error])?;
    if let Some(open) = open {
        let mut laying = Laying {
            laid: &mut laid,
            variables,
            open,
        };
        laying.suite(&mut tree);
    }
    Ok((laid, tree))
}

impl Laid {
    /// A text with no others behind it.
    pub(super) fn alone(file: &str, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            files: vec![(1, file.to_owned())],
            unread: Vec::new(),
        }
    }

    /// The file and the line of it that a line of the whole is.
    fn place(&self, position: Position) -> (&str, Position) {
        let before = self
            .files
            .iter()
            .rev()
            .find(|(first, _)| *first <= position.line);
        let (first, file) = before.unwrap_or(&self.files[0]);
        let line = position.line.saturating_sub(first.saturating_sub(1));
        (file, Position { line, ..position })
    }

    /// The same, said of the file it stands in.
    pub(super) fn led_back(&self, error: ProfileError) -> ProfileError {
        let (file, position) = self.place(error.position);
        ProfileError {
            file: file.to_owned(),
            position,
            ..error
        }
    }

    /// What is wrong with the whole, said of the files it stands in: those that were not read, and the
    /// `errors` that are not about their names.
    pub(super) fn all_led_back(&self, errors: Vec<ProfileError>) -> Vec<ProfileError> {
        let unread = |error: &ProfileError| {
            let mut unread = self.unread.iter();
            unread.any(|(position, _)| *position == error.position)
        };
        let others = errors.into_iter().filter(|error| !unread(error));
        let mut all: Vec<_> = self.unread.iter().map(|(_, error)| error.clone()).collect();
        all.extend(others.map(|error| self.led_back(error)));
        all
    }

    /// Whether a file that was named could not be read.
    pub(super) fn lacks_files(&self) -> bool {
        !self.unread.is_empty()
    }

    /// A part of the whole as it stands in its file, and that file.
    pub(super) fn in_its_file(&self, mut part: At<Tree>) -> (&str, At<Tree>) {
        let (file, _) = self.place(part.position);
        each_position(&mut part, &mut |position| {
            *position = self.place(*position).1;
        });
        (file, part)
    }

    /// Lays a text behind the others; gives how many lines there were before.
    fn add(&mut self, file: String, text: &str) -> u32 {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let before = self.text.bytes().filter(|byte| *byte == b'\n').count();
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.files.push((before.saturating_add(1), file));
        self.text.push_str(text);
        before
    }
}

struct Laying<'l> {
    laid: &'l mut Laid,
    /// What they stand for in names of files.
    variables: Variables<'l>,
    open: Open<'l>,
}

impl Laying<'_> {
    fn suite(&mut self, tree: &mut At<Tree>) {
        self.invariants(tree);
        if let Some(contract) = member(tree, "contract") {
            if let Some(path) = self.path(contract) {
                self.lay(contract, &path);
                // A whole suite is as good as its contract alone.
                if let Some(inner) = member(contract, "contract") {
                    *contract = inner.clone();
                    self.refuse_another(contract);
                }
            }
            self.invariants(contract);
        }
        let sessions = member(tree, "replays").and_then(|replays| member(replays, "sessions"));
        for session in sessions.into_iter().flat_map(items) {
            let file = member(session, "file").and_then(|file| self.written(file));
            if let Some(file) = file {
                let over = beside_file(session);
                self.lay(session, &file);
                set_over(session, over);
            }
        }
    }

    /// The schemas that they name.
    fn invariants(&mut self, tree: &mut At<Tree>) {
        let invariants = member(tree, "invariants");
        for invariant in invariants.into_iter().flat_map(items) {
            if let Some(schema) = member(invariant, "schema")
                && let Some(path) = self.path(schema)
            {
                self.lay(schema, &path);
            }
        }
    }

    /// A file that is named for its contract has one, and does not name the file of another.
    fn refuse_another(&mut self, contract: &At<Tree>) {
        let Some(other) = self.path(contract) else {
            return;
        };
        let (file, position) = self.laid.place(contract.position);
        let error = ProfileError {
            file: file.to_owned(),
            position,
            pointer: String::new(),
            message: format!(
                "`{other}` is not opened: a file that a suite names as its contract has the contract itself; name \
                 in the suite the file that does"
            ),
        };
        self.laid.unread.push((contract.position, error));
    }

    /// A text with its variables expanded. What is wrong with them is said where all are.
    fn written(&self, node: &At<Tree>) -> Option<String> {
        let text = text(node)?;
        expand(text, self.variables).ok()
    }

    /// The text, if it names a file: names of contracts have no ending, and a schema that is written out is no
    /// name.
    fn path(&self, node: &At<Tree>) -> Option<String> {
        let text = self.written(node)?;
        let text = text.trim();
        let has_ending = [".yaml", ".yml", ".json"]
            .iter()
            .any(|ending| text.to_ascii_lowercase().ends_with(ending));
        (has_ending && !text.contains(['\n', '{'])).then(|| text.to_owned())
    }

    /// Puts a file in the place of its name.
    fn lay(&mut self, node: &mut At<Tree>, path: &str) {
        let named = node.position;
        let (from, position) = self.laid.place(named);
        let wrong = |message: String| ProfileError {
            file: from.to_owned(),
            position,
            pointer: String::new(),
            message,
        };
        let (file, text) = match (self.open)(path, from) {
            Ok(opened) => opened,
            Err(message) => {
                let error = wrong(message);
                return self.laid.unread.push((named, error));
            }
        };
        match document::read(&file, &text) {
            Ok(mut tree) => {
                let lines = self.laid.add(file, &text);
                each_position(&mut tree, &mut |position| {
                    position.line = position.line.saturating_add(lines);
                });
                *node = tree;
            }
            Err(error) => self.laid.unread.push((named, error)),
        }
    }
}

/// What a session says beside the file that it names: taken out of it.
fn beside_file(session: &mut At<Tree>) -> Vec<(At<String>, At<Tree>)> {
    match &mut session.value {
        Tree::Map(members) => members
            .extract_if(.., |(name, _)| name.value != "file")
            .collect(),
        Tree::Null | Tree::Scalar { .. } | Tree::List(_) => Vec::new(),
    }
}

/// Puts members in a map, in the place of those of the same name.
fn set_over(node: &mut At<Tree>, over: Vec<(At<String>, At<Tree>)>) {
    let Tree::Map(members) = &mut node.value else {
        return;
    };
    for (name, member) in over {
        members.retain(|(known, _)| known.value != name.value);
        members.push((name, member));
    }
}

fn member<'t>(node: &'t mut At<Tree>, name: &str) -> Option<&'t mut At<Tree>> {
    match &mut node.value {
        Tree::Map(members) => {
            let found = members.iter_mut().find(|(found, _)| found.value == name);
            found.map(|(_, member)| member)
        }
        Tree::Null | Tree::Scalar { .. } | Tree::List(_) => None,
    }
}

fn items(node: &mut At<Tree>) -> &mut [At<Tree>] {
    match &mut node.value {
        Tree::List(items) => items,
        Tree::Null | Tree::Scalar { .. } | Tree::Map(_) => &mut [],
    }
}

fn text(node: &At<Tree>) -> Option<&str> {
    match &node.value {
        Tree::Scalar { text, .. } => Some(text),
        Tree::Null | Tree::List(_) | Tree::Map(_) => None,
    }
}

fn each_position(node: &mut At<Tree>, change: &mut impl FnMut(&mut Position)) {
    change(&mut node.position);
    match &mut node.value {
        Tree::Null | Tree::Scalar { .. } => {}
        Tree::List(items) => {
            for item in items {
                each_position(item, change);
            }
        }
        Tree::Map(members) => {
            for (name, member) in members {
                change(&mut name.position);
                each_position(member, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_profiles::variables::Variables;

    use super::super::{ContractPart, Session, read_local};
    use super::Open;

    const SUITE: &str = "agent: {endpoint: 'http://a.test/'}\ngolden_prompts: [hello]\n\
                         contract: parts/contract.yaml\n\
                         replays: {sessions: [{file: incident.yaml}]}";

    fn opened(path: &str, from: &str) -> Result<(String, String), String> {
        let text = match (path, from) {
            ("parts/contract.yaml", "suite.yaml") => {
                "name: polite\ninvariants:\n  - {id: a, type: json_schema, schema: ./answer.json}\n  \
                 - {id: b, type: completes}\nchaos_matrix: [{name: clean}]\n"
            }
            ("./answer.json", "parts/contract.yaml") => r#"{"type": "object"}"#,
            ("incident.yaml", "suite.yaml") => "id: one\ninput: hello",
            _ => return Err(format!("`{path}` cannot be read: there is none")),
        };
        Ok((path.to_owned(), text.to_owned()))
    }

    fn told(open: Open<'_>, suite: &str) -> Vec<String> {
        let none = |_: &str| Err(std::env::VarError::NotPresent);
        let read = read_local("suite.yaml", suite, Variables::From(&none), open);
        let errors = read.err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn g40_files_that_are_named_are_looked_for_from_the_one_they_stand_in() {
        let none = |_: &str| Err(std::env::VarError::NotPresent);
        let (suite, document) =
            read_local("suite.yaml", SUITE, Variables::From(&none), &opened).expect("valid");
        let Some(ContractPart::Written(contract)) = &suite.contract else {
            panic!("{:?}", suite.contract)
        };
        assert_eq!(contract.name, "polite");
        assert!(
            matches!(&suite.replays.sessions[..], [Session::Inline(session)] if session.id == "one")
        );
        assert_eq!(
            document["contract"]["invariants"][0]["schema"]["type"],
            "object"
        );
        assert_eq!(document["replays"]["sessions"][0]["input"], "hello");
    }

    #[test]
    fn variables_expand_in_the_names_of_files() {
        let table = |name: &str| match name {
            "DIR" => Ok("parts".to_owned()),
            "NAME" => Ok("answer".to_owned()),
            _ => Err(std::env::VarError::NotPresent),
        };
        let open = |path: &str, from: &str| {
            let (name, text) = opened(path, from)?;
            Ok((name, text.replace("./answer.json", "'./${NAME}.json'")))
        };
        let suite = SUITE
            .replace("parts/", "${DIR}/")
            .replace("incident.yaml", "'${NOPE:-incident}.yaml'");
        let read = read_local("suite.yaml", &suite, Variables::From(&table), &open);
        let (_, document) = read.expect("valid");
        let schema = &document["contract"]["invariants"][0]["schema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(document["replays"]["sessions"][0]["input"], "hello");
        let missing = told(&opened, &SUITE.replace("parts/", "${GONE}/"));
        assert!(
            missing[0].contains("the variable `GONE` is not set"),
            "{missing:?}"
        );
    }

    #[test]
    fn the_file_of_a_contract_names_no_other() {
        let open = |path: &str, from: &str| {
            let (name, text) = opened(path, from)?;
            let text = match path {
                "parts/contract.yaml" => "contract: ./contract.yaml".to_owned(),
                _ => text,
            };
            Ok((name, text))
        };
        let told = told(&open, SUITE);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("parts/contract.yaml:1:11: `./contract.yaml` is not opened"),
            "{told:?}"
        );
    }

    #[test]
    fn what_stands_beside_a_file_is_set_over_what_it_says() {
        let none = |_: &str| Err(std::env::VarError::NotPresent);
        let suite = SUITE.replace(
            "incident.yaml",
            "incident.yaml, input: bye, name: n, expected_failure: x",
        );
        let read = read_local("suite.yaml", &suite, Variables::From(&none), &opened);
        let (suite, _) = read.expect("valid");
        let [Session::Inline(session)] = &suite.replays.sessions[..] else {
            panic!("{:?}", suite.replays)
        };
        let told = [
            Some(session.id.as_str()),
            session.input.as_deref(),
            session.name.as_deref(),
            session.expected_failure.as_deref(),
        ];
        assert_eq!(told, [Some("one"), Some("bye"), Some("n"), Some("x")]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_in_its_own_lines() {
        let spoilt = |from: &'static str, to: &'static str| {
            move |path: &str, file: &str| {
                opened(path, file).map(|(name, text)| (name, text.replace(from, to)))
            }
        };
        for (from, to, expected) in [
            (
                "type: completes",
                "type: complets",
                "parts/contract.yaml:4:19: unknown invariant type `complets`, did you mean `completes`?",
            ),
            (
                r#""object""#,
                r#""objct""#,
                "./answer.json:1:10: this is no JSON Schema",
            ),
            (
                "input: hello",
                "inpt: hello",
                "incident.yaml:1:1: a session has `file`, or `id` and `input`",
            ),
            ("input: hello", "input: [", "incident.yaml:"),
            (
                "./answer.json",
                "./gone.json",
                "parts/contract.yaml:3:40: `./gone.json` cannot be read: there is none",
            ),
        ] {
            let told = told(&spoilt(from, to), SUITE);
            assert!(
                told.iter().any(|error| error.starts_with(expected)),
                "{to}: {told:#?}"
            );
        }
        let gone = told(&opened, &SUITE.replace("incident", "gone"));
        assert_eq!(
            gone,
            ["suite.yaml:4:22: `gone.yaml` cannot be read: there is none"]
        );
    }
}
