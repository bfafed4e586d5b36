//! Loads the files that a suite names: a contract, replay sessions, JSON Schemas, templates and a corpus of mutations.
//!
//! Each file is appended to the suite's text, with continued line numbers, and its tree replaces its name. Other
//! code therefore handles a single document. Only errors and warnings are mapped back to the file and line at the
//! end.
//!
//! ```text
//! suite.yaml  1 ..  40      contract: ./contract.yaml ─▶ the tree of 41 .. 60
//! contract.yaml ─▶ 41 .. 60
//! ```

use serde_json::Value;
use squall_documents::variables::expand;
use squall_documents::{At, DocumentError, Position, SourceText, Tree, Variables, parse};

/// Opens a file that another file names. Returns its name for errors and its text. The error is a sentence without
/// the position.
pub type Open<'f> = &'f dyn Fn(&str, &str) -> Result<(String, String), String>;

/// A suite with all its files.
#[derive(Debug)]
pub(super) struct Laid {
    /// The combined text.
    pub(super) source: SourceText,
    pub(super) tree: At<Tree>,
    /// Files that cannot be loaded or parsed: the positions of their names, and the errors.
    unread: Vec<(Position, DocumentError)>,
}

/// Reads a suite, and replaces the names of files by their contents.
/// The files of `open` replace the suite's replay sessions, if there are any.
pub(super) fn read(
    file: &str,
    text: &str,
    variables: Variables<'_>,
    open: Option<(Open<'_>, &[String])>,
) -> Result<Laid, Vec<DocumentError>> {
    let mut tree = parse(file, text).map_err(|error| vec![error])?;
    let (mut source, mut unread) = (SourceText::new(file, text), Vec::new());
    if let Some((open, sessions)) = open {
        let mut laying = Laying {
            source: &mut source,
            unread: &mut unread,
            variables,
            open,
        };
        if !sessions.is_empty() {
            laying.replays(&mut tree, sessions);
        }
        laying.suite(&mut tree);
    }
    Ok(Laid {
        source,
        tree,
        unread,
    })
}

impl Laid {
    /// All errors: files that were not loaded, and `errors` that are not about their names.
    pub(super) fn and_unread(&self, errors: Vec<DocumentError>) -> Vec<DocumentError> {
        let is_of_a_name = |error: &DocumentError| {
            let mut names = self.unread.iter().map(|(name, _)| self.source.place(*name));
            names.any(|(file, position)| **file == error.file && position == error.position)
        };
        let unread = self.unread.iter().map(|(_, error)| error.clone());
        let others = errors.into_iter().filter(|error| !is_of_a_name(error));
        unread.chain(others).collect()
    }

    /// Whether a file could not be loaded.
    pub(super) fn lacks_files(&self) -> bool {
        !self.unread.is_empty()
    }
}

struct Laying<'l> {
    source: &'l mut SourceText,
    unread: &'l mut Vec<(Position, DocumentError)>,
    /// The variables in names of files.
    variables: Variables<'l>,
    open: Open<'l>,
}

impl Laying<'_> {
    fn suite(&mut self, tree: &mut At<Tree>) {
        self.invariants(tree);
        self.contract(tree);
        if let Some(mutations) = tree.member_mut("mutations") {
            self.mutations(mutations);
        }
        let sessions = tree.member_mut("replays");
        let sessions = sessions.and_then(|replays| replays.member_mut("sessions"));
        for session in sessions.into_iter().flat_map(At::items_mut) {
            let file = session.member_mut("file");
            if let Some(file) = file.and_then(|file| self.written(file)) {
                let over = beside_file(session);
                self.lay(session, &file);
                literal(session);
                set_over(session, over);
            }
            self.contract(session);
        }
    }

    /// Loads a corpus, templates, and folders of templates. A folder is opened as the list of its files.
    fn mutations(&mut self, mutations: &mut At<Tree>) {
        if let Some(corpus) = mutations.member_mut("corpus")
            && let Some(file) = self.written(corpus)
        {
            // A line of JSON is an item of a list in YAML.
            let as_list = |text: String| format!("- {}", text.trim_end().replace('\n', "\n- "));
            self.lay_changed(corpus, &file, as_list);
        }
        let templates = mutations.member_mut("templates");
        let Some(Tree::List(items)) = templates.map(|templates| &mut templates.value) else {
            return;
        };
        let mut laid = Vec::new();
        for mut item in std::mem::take(items) {
            if let Some(path) = self.written(&item) {
                self.lay(&mut item, &path);
            }
            match item.value {
                Tree::List(mut files) => {
                    for file in &mut files {
                        if let Some(path) = self.written(file) {
                            self.lay(file, &path);
                        }
                    }
                    laid.append(&mut files);
                }
                Tree::Null | Tree::Scalar { .. } | Tree::Map(_) => laid.push(item),
            }
        }
        *items = laid;
    }

    /// Replaces the suite's replays by these files.
    fn replays(&mut self, tree: &mut At<Tree>, files: &[String]) {
        let position = tree.position;
        let at = |value| At { value, position };
        let name = |name: &str| At {
            value: name.to_owned(),
            position,
        };
        let sessions = files.iter().map(|file| {
            let mut session = at(Tree::Null);
            // Unlike names in the suite, these are not relative to it.
            self.lay_from(&mut session, file, "", |text| text);
            literal(&mut session);
            session
        });
        let sessions = at(Tree::List(sessions.collect()));
        let replays = at(Tree::Map(vec![(name("sessions"), sessions)]));
        set_over(tree, vec![(name("replays"), replays)]);
    }

    /// Loads the contract of a suite or of a replay session.
    fn contract(&mut self, tree: &mut At<Tree>) {
        let Some(contract) = tree.member_mut("contract") else {
            return;
        };
        let position = contract.position;
        if let Some(path) = self.path(contract) {
            self.lay(contract, &path);
            // A whole suite is accepted in place of its contract.
            if let Some(inner) = contract.member_mut("contract") {
                *contract = inner.clone();
                self.refuse_another(contract);
            } else if contract.member_mut("agent").is_some() {
                let message = format!(
                    "`{path}` is a suite without `contract`; add one to it, or name another file"
                );
                self.not_read(position, message);
                let value = Tree::Null;
                *contract = At { value, position };
            }
        }
        self.invariants(contract);
    }

    /// Loads the schemas of invariants.
    fn invariants(&mut self, tree: &mut At<Tree>) {
        let invariants = tree.member_mut("invariants");
        for invariant in invariants.into_iter().flat_map(At::items_mut) {
            if let Some(schema) = invariant.member_mut("schema")
                && let Some(path) = self.path(schema)
            {
                self.lay(schema, &path);
            }
        }
    }

    /// Reports an error if a contract's file names another file.
    fn refuse_another(&mut self, contract: &At<Tree>) {
        if let Some(other) = self.path(contract) {
            let message = format!(
                "`{other}` is not opened: a file that a suite names as its contract has the contract itself; name \
                 in the suite the file that does"
            );
            self.not_read(contract.position, message);
        }
    }

    fn not_read(&mut self, name: Position, message: String) {
        let error = DocumentError {
            position: name,
            ..DocumentError::whole("", message)
        };
        self.unread.push((name, self.source.placed(error)));
    }

    /// A text with expanded variables. Errors in variables are reported elsewhere.
    fn written(&self, node: &At<Tree>) -> Option<String> {
        let Tree::Scalar { text, .. } = &node.value else {
            return None;
        };
        expand(text, self.variables).ok()
    }

    /// The text if it is a path. Names of contracts have no extension, and an inline schema is not a name.
    fn path(&self, node: &At<Tree>) -> Option<String> {
        let text = self.written(node)?;
        let text = text.trim();
        let has_ending = [".yaml", ".yml", ".json"]
            .iter()
            .any(|ending| text.to_ascii_lowercase().ends_with(ending));
        (has_ending && !text.contains(['\n', '{'])).then(|| text.to_owned())
    }

    /// Replaces the name of a file by its content.
    fn lay(&mut self, node: &mut At<Tree>, path: &str) {
        self.lay_changed(node, path, |text| text);
    }

    fn lay_changed(
        &mut self,
        node: &mut At<Tree>,
        path: &str,
        change: impl FnOnce(String) -> String,
    ) {
        let (from, _) = self.source.place(node.position);
        let from = from.to_string();
        self.lay_from(node, path, &from, change);
    }

    fn lay_from(
        &mut self,
        node: &mut At<Tree>,
        path: &str,
        from: &str,
        change: impl FnOnce(String) -> String,
    ) {
        let named = node.position;
        let (file, text) = match (self.open)(path, from) {
            Ok((file, text)) => (file, change(text)),
            Err(message) => return self.not_read(named, message),
        };
        match parse(&file, &text) {
            Ok(mut tree) => {
                let lines = self.source.add(&file, &text);
                tree.each_position(&mut |position| {
                    position.line = position.line.saturating_add(lines);
                });
                *node = tree;
            }
            Err(error) => self.unread.push((named, error)),
        }
    }
}

/// Escapes variables: recorded texts may look like some.
fn literal(session: &mut At<Tree>) {
    session.each_text_mut(&mut escape);
}

/// The same in a document of the API.
pub fn escape_variables(session: &mut Value) {
    match session {
        Value::String(text) => escape(text),
        Value::Array(items) => items.iter_mut().for_each(escape_variables),
        Value::Object(members) => members.values_mut().for_each(escape_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn escape(text: &mut String) {
    if text.contains("${") {
        *text = text.replace("${", "$${");
    }
}

/// Removes and returns the other fields of a session that names a file.
fn beside_file(session: &mut At<Tree>) -> Vec<(At<String>, At<Tree>)> {
    match &mut session.value {
        Tree::Map(members) => members
            .extract_if(.., |(name, _)| name.value != "file")
            .collect(),
        Tree::Null | Tree::Scalar { .. } | Tree::List(_) => Vec::new(),
    }
}

/// Sets members of a map, replacing those with the same name.
fn set_over(node: &mut At<Tree>, over: Vec<(At<String>, At<Tree>)>) {
    let Tree::Map(members) = &mut node.value else {
        return;
    };
    for (name, member) in over {
        members.retain(|(known, _)| known.value != name.value);
        members.push((name, member));
    }
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::super::{ContractPart, SuiteOfFiles, SuiteSession, read_local};
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
        let none = |_: &str| Err(squall_documents::VariableError::NotSet);
        let read = read_local("suite.yaml", suite, Variables::From(&none), open, &[]);
        let errors = read.err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn g40_files_that_are_named_are_looked_for_from_the_one_they_stand_in() {
        let none = |_: &str| Err(squall_documents::VariableError::NotSet);
        let read = read_local("suite.yaml", SUITE, Variables::From(&none), &opened, &[]);
        let SuiteOfFiles {
            suite, document, ..
        } = read.expect("valid");
        let Some(ContractPart::Written(contract)) = &suite.contract else {
            panic!("{:?}", suite.contract)
        };
        assert_eq!(contract.name, "polite");
        assert!(
            matches!(&suite.replays.sessions[..], [SuiteSession::Inline(one)] if one.session.id == "one")
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
            _ => Err(squall_documents::VariableError::NotSet),
        };
        let open = |path: &str, from: &str| {
            let (name, text) = opened(path, from)?;
            Ok((name, text.replace("./answer.json", "'./${NAME}.json'")))
        };
        let suite = SUITE
            .replace("parts/", "${DIR}/")
            .replace("incident.yaml", "'${NOPE:-incident}.yaml'");
        let read = read_local("suite.yaml", &suite, Variables::From(&table), &open, &[]);
        let document = read.expect("valid").document;
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
    fn a_suite_without_a_contract_is_none() {
        let open = |path: &str, from: &str| {
            let (name, text) = opened(path, from)?;
            let text = match path {
                "parts/contract.yaml" => {
                    "agent: {endpoint: 'http://a.test/'}\ninvariants: []".to_owned()
                }
                _ => text,
            };
            Ok((name, text))
        };
        let errors = told(&open, SUITE);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].starts_with("suite.yaml:3:11: `parts/contract.yaml` is a suite without"),
            "{errors:?}"
        );
    }

    #[test]
    fn an_error_in_an_empty_file_names_it() {
        let open = |path: &str, from: &str| match path {
            "empty.yaml" => Ok((path.to_owned(), String::new())),
            _ => opened(path, from),
        };
        let suite = SUITE.replace(
            "{file: incident",
            "{file: empty.yaml}, {}, {}, {file: incident",
        );
        let errors = told(&open, &suite);
        assert!(
            errors
                .iter()
                .any(|error| error.starts_with("empty.yaml:1:1: ")),
            "{errors:?}"
        );
        assert!(
            !errors.iter().any(|error| error.contains("already")),
            "{errors:?}"
        );
    }

    #[test]
    fn what_stands_beside_a_file_is_set_over_what_it_says() {
        let none = |_: &str| Err(squall_documents::VariableError::NotSet);
        let suite = SUITE.replace(
            "incident.yaml",
            "incident.yaml, input: bye, name: n, expected_failure: x",
        );
        let read = read_local("suite.yaml", &suite, Variables::From(&none), &opened, &[]);
        let suite = read.expect("valid").suite;
        let [SuiteSession::Inline(session)] = &suite.replays.sessions[..] else {
            panic!("{:?}", suite.replays)
        };
        let session = &session.session;
        let told = [
            Some(session.id.as_str()),
            session.input.first().map(String::as_str),
            session.name.as_deref(),
            session.expected_failure.as_deref(),
        ];
        assert_eq!(told, [Some("one"), Some("bye"), Some("n"), Some("x")]);
    }

    #[test]
    #[rustfmt::skip]
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
            (r#""object""#, r#""objct""#, "./answer.json:1:10: this is no JSON Schema"),
            ("input: hello", "inpt: hello", "incident.yaml:1:1: a session has `file`, or `id` and `input`, which"),
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
