//! Lists what a suite does on the machine that executes it: start programs, read files. A document from a client
//! requires approval for this.

use super::{Contract, ContractPart, Suite, SuiteSession};
use crate::agents::settings::{Reset, Way};
use crate::invariants::Invariant;

/// A resource of the machine that a document uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// It starts a program.
    Program {
        /// JSON pointer to the program's name.
        pointer: String,
    },
    /// It reads a file.
    File {
        /// JSON pointer to the file's name.
        pointer: String,
    },
}

impl Suite {
    /// All resources of the machine that the suite uses.
    pub fn touches(&self) -> Vec<Touched> {
        let mut touched: Vec<_> = self.programs_of_the_agent().map(program).collect();
        match &self.contract {
            Some(ContractPart::Named(name)) if is_file(name) => touched.push(file("/contract")),
            Some(ContractPart::Written(contract)) => {
                touched.extend(touched_by_contract(contract));
            }
            Some(ContractPart::Named(_)) | None => {}
        }
        touched.extend(touched_by(&self.invariants));
        if let Some(mutations) = &self.mutations {
            let programs = (!mutations.commands.is_empty()).then_some("/mutations/commands");
            touched.extend(programs.map(program));
            let files = mutations.files.iter();
            touched.extend(files.map(|pointer| file(pointer)));
        }
        for contract in self.replays.contracts() {
            touched.extend(touched_by(contract.invariants()));
        }
        let sessions = self.replays.sessions.iter().enumerate();
        touched.extend(sessions.filter_map(|(at, session)| {
            let field = match session {
                SuiteSession::File => "file",
                SuiteSession::Inline(session) => match &session.contract {
                    Some(ContractPart::Named(name)) if is_file(name) => "contract",
                    Some(_) | None => return None,
                },
            };
            Some(file(&format!("/replays/sessions/{at}/{field}")))
        }));
        touched
    }

    /// Every URL that the suite dials, with the JSON pointer to its field.
    pub fn dials(&self) -> Vec<(&'static str, &str)> {
        let agent = match &self.agent.way {
            Way::Http(http) => Some(&http.endpoint),
            Way::OpenAi(chat) => Some(&chat.endpoint),
            Way::Command(_) | Way::Python { .. } => None,
        };
        let reset = match &self.agent.reset {
            Some(Reset::Endpoint(endpoint)) => Some(endpoint),
            Some(Reset::Function(_) | Reset::Command(_)) | None => None,
        };
        let ready = self.agent.start.as_ref().map(|start| &start.ready_url);
        let embeddings = self.embeddings.as_ref().map(|endpoint| &endpoint.base_url);
        let written = [
            ("/agent/endpoint", agent),
            ("/agent/reset_endpoint", reset),
            ("/agent/start/ready_url", ready),
            ("/embeddings/base_url", embeddings),
        ];
        let written = written.into_iter();
        let written = written.filter_map(|(at, url)| Some((at, url?.as_str())));
        let model = self
            .model
            .as_ref()
            .map(|model| ("/model/base_url", model.base_url()));
        written.chain(model).collect()
    }

    fn programs_of_the_agent(&self) -> impl Iterator<Item = &'static str> {
        let way = match &self.agent.way {
            Way::Command(_) | Way::Python { .. } => Some("/agent/type"),
            Way::Http(_) | Way::OpenAi(_) => None,
        };
        let reset = match &self.agent.reset {
            Some(Reset::Command(_)) => Some("/agent/reset_command"),
            Some(Reset::Function(_)) => Some("/agent/reset_function"),
            Some(Reset::Endpoint(_)) | None => None,
        };
        let start = self.agent.start.as_ref().map(|_| "/agent/start");
        way.into_iter().chain(reset).chain(start)
    }
}

/// All resources of the machine that a contract uses.
pub fn touched_by_contract(contract: &Contract) -> Vec<Touched> {
    touched_by(&contract.invariants).collect()
}

fn touched_by(invariants: &[Invariant]) -> impl Iterator<Item = Touched> {
    let programs = invariants.iter().filter(|one| one.check.starts_a_program);
    programs.map(|one| Touched::Program {
        pointer: one.place.pointer.clone(),
    })
}

/// Whether the name of a contract is a path.
fn is_file(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_yaml = ending.is_some_and(|ending| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    });
    is_yaml || name.contains(['/', '\\'])
}

fn program(pointer: &'static str) -> Touched {
    Touched::Program {
        pointer: pointer.to_owned(),
    }
}

fn file(pointer: &str) -> Touched {
    Touched::File {
        pointer: pointer.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;
    use crate::suite::parse;

    #[test]
    #[rustfmt::skip]
    fn what_touches_the_machine_is_told_with_its_place() {
        let cases: &[(&str, &[Touched])] = &[
            ("agent: {endpoint: 'http://a.test/'}", &[]),
            ("agent: {type: command, command: [cat]}", &[program("/agent/type")]),
            ("agent: {type: python, endpoint: 'a:b'}", &[program("/agent/type")]),
            (
                "agent: {endpoint: 'http://a.test/', start: {command: [x], ready_url: 'http://a.test/'}}",
                &[program("/agent/start")],
            ),
            ("agent: {endpoint: 'http://a.test/', reset_command: [x]}", &[program("/agent/reset_command")]),
            (
                "agent: {endpoint: 'http://a.test/', reset_function: 'a:b'}",
                &[program("/agent/reset_function")],
            ),
            ("agent: {endpoint: 'http://a.test/'}\ncontract: ./c.yaml", &[file("/contract")]),
            ("agent: {endpoint: 'http://a.test/'}\ncontract: bookings", &[]),
            (
                "agent: {endpoint: 'http://a.test/'}\nreplays: {sessions: [{file: r.yaml}]}",
                &[file("/replays/sessions/0/file")],
            ),
            (
                "agent: {endpoint: 'http://a.test/'}\nreplays: {sessions: [{id: r, input: x, contract: ./c.yaml}]}",
                &[file("/replays/sessions/0/contract")],
            ),
            (
                "agent: {endpoint: 'http://a.test/'}\nreplays: {sessions: [{id: r, input: x, \
                 contract: {invariants: [{id: c, type: command, command: [x]}]}}]}",
                &[Touched::Program { pointer: "/replays/sessions/0/contract/invariants/0".to_owned() }],
            ),
        ];
        for (written, expected) in cases {
            let text =
                format!("{written}\ngolden_prompts: [x]\ninvariants: [{{type: completes}}]\n");
            let suite = parse("s", &text, Variables::Refused).expect("valid");
            assert_eq!(suite.touches(), *expected, "{written}");
        }
    }
}
