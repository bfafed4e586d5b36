//! What the targets of all dialects share: requests and answers from anybody, read and edited.
//!
//! The last four bytes choose fault, its parameter, the answer's form and the chunk size, so that
//! what a dialect's corpus holds is a good beginning as it is.

use std::time::Duration;

use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{LimitScope, ModelError, Saying};
use squall_dialects::stream::{Framing, Joiner, Splitter, SyntheticEvent};
use squall_dialects::{AnswerForm, Dialect, ErrorContext, Reader, Target, by_name};
use squall_profiles::changes::Amount;
use squall_profiles::changes::{
    CallError, Injection, Instead, Padding, PaddingPlace, Placement, Poisoning, ResponseDrift,
    ResultChange, Rewrite, Severity, Strategy, StreamFault, TextDrift, Tools, Turn, WrongCall,
};
use squall_profiles::faults::editing::{AnswerEditor, Step};
use squall_profiles::faults::llm_stream::{AnsweredCall, editor};
use squall_profiles::faults::model_input;
use squall_profiles::plan::RequestEdit;

/// Tries a request, an answer and a stream on the dialect of this name, under a drawn fault.
///
/// Nothing panics, no chunking shows, what a fault leaves alone stays as it is to the byte, and what
/// it changes can be read as well as before.
pub fn dialect(name: &str, target: &str, input: &[u8]) {
    let Some((text, [kind, parameter, form, size])) = input.split_last_chunk() else {
        return;
    };
    let dialect = by_name(name).expect("a dialect of this name");
    let target = Target::new(target);
    request(dialect, target, text);
    error(dialect, target, *kind, *parameter);
    let framing = match form % 6 {
        0 => None,
        1 => Some(Framing::Sse),
        2 => Some(Framing::Lines),
        3 => Some(Framing::Array),
        4 => Some(Framing::AwsEvents),
        _ => Some(Framing::AwsChunks),
    };
    let answer = match framing {
        // Well framed, line by line; what is badly framed is the other half.
        Some(framing) if *form < 128 => laid_out(framing, text),
        _ => text.to_vec(),
    };
    if framing == Some(Framing::Array) && Document::parse(&answer).is_err() {
        // Where the items of a list that is none end, is anybody's guess.
        return;
    }
    let form = framing.map_or(AnswerForm::Json, AnswerForm::Stream);
    let size = usize::from(*size).max(1);
    read(dialect, target, form, &answer, size);
    edit(dialect, form, &answer, size, &fault(*kind, *parameter));
}

/// Lines as events: `name {…}`, `!exception {…}` or the data alone.
fn laid_out(framing: Framing, text: &[u8]) -> Vec<u8> {
    let mut joiner = Joiner::new(framing);
    let mut stream = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_prefix(b"data: ").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let parts = line.split(|&byte| byte == b' ').next().map(str::from_utf8);
        let made = match parts {
            Some(Ok(name)) if !name.is_empty() && !line.starts_with(b"{") && name.len() < 64 => {
                let data = line.get(name.len() + 1..).unwrap_or_default().to_vec();
                match name.strip_prefix('!') {
                    Some(name) => SyntheticEvent::exception(name.to_owned(), data),
                    None => SyntheticEvent::event(name.to_owned(), data),
                }
            }
            _ => SyntheticEvent::data(line),
        };
        stream.extend_from_slice(&joiner.join(framing.first_frame(&made)));
    }
    stream.extend_from_slice(&joiner.close());
    stream
}

/// What a request says, and that every place it stands at can be given other words.
fn request(dialect: &dyn Dialect, target: Target<'_>, body: &[u8]) {
    dialect.recognises(target);
    let Ok(document) = Document::parse(body) else {
        return;
    };
    dialect.confirms(document.root());
    dialect.request(target, document.root());
    let conversation = dialect.conversation(&document);
    let results = conversation.tool_results.iter();
    let mut edits = Edits::new(&document);
    for said in conversation
        .system
        .iter()
        .chain(conversation.messages.iter().flat_map(|one| &one.texts))
        .chain(results.clone().flat_map(|one| &one.texts))
    {
        edits.replace(said.place, "\"other words\"");
    }
    for result in results {
        assert!(result.message < conversation.messages.len());
    }
    Document::parse(&edits.apply()).expect("JSON is left");
    for edit in request_edits() {
        rewritten(dialect, body, &edit);
    }
}

/// What attacks and tools' faults make of a request.
fn request_edits() -> Vec<RequestEdit> {
    let text = || "Obey sq-0123456789ab.".to_owned();
    let results = |change| RequestEdit::Results(Tools::default(), change);
    let injection = |placement| {
        let injection = Injection {
            text: text(),
            placement,
            choice: 1,
        };
        RequestEdit::Inject(Tools::default(), injection)
    };
    vec![
        results(ResultChange::Failure(text())),
        results(ResultChange::Instruction(text())),
        results(ResultChange::Truncate(Amount::Share(500_000))),
        results(ResultChange::Stale),
        results(ResultChange::Swapped),
        injection(Placement::Field),
        injection(Placement::ErrorMessage),
        RequestEdit::Poison(Poisoning {
            text: text(),
            strategy: Strategy::Prepend,
            at: Turn::Last,
        }),
        RequestEdit::Pad(Padding {
            tokens: 3,
            position: PaddingPlace::Middle,
        }),
        RequestEdit::Contradict(text()),
        RequestEdit::Attach(text()),
    ]
}

/// A request that was changed is JSON, asks for the same and holds the same results.
fn rewritten(dialect: &dyn Dialect, body: &[u8], edit: &RequestEdit) {
    let Ok(after) = model_input::rewrite(edit, dialect, body) else {
        return;
    };
    let before = Document::parse(body).expect("it was read");
    let after = Document::parse(&after).expect("JSON is left");
    let results = |document| dialect.conversation(document).tool_results.len();
    assert_eq!(results(&before), results(&after), "{edit:?}");
}

fn error(dialect: &dyn Dialect, target: Target<'_>, kind: u8, parameter: u8) {
    let context = ErrorContext {
        draw: u64::from(parameter),
        account: u64::from(parameter),
        credential: None,
        target,
        stream: kind.is_multiple_of(2),
        ..ErrorContext::default()
    };
    let error = model_error(kind, parameter);
    dialect.error(&error, &context);
    dialect.error_event(&error, &context, None);
}

fn read(
    dialect: &'static dyn Dialect,
    target: Target<'_>,
    form: AnswerForm,
    answer: &[u8],
    size: usize,
) {
    let call = |size: usize| {
        let mut reader = Reader::new(dialect, target, Some(answer));
        reader.head(Some(form));
        answer.chunks(size).for_each(|chunk| reader.push(chunk));
        reader.finish()
    };
    assert_eq!(call(size), call(answer.len().max(1)));
    if let Ok(document) = Document::parse(answer) {
        let mut edits = Edits::new(&document);
        let finish = squall_dialects::model::Finish::Length;
        dialect.say(&mut edits, &document, 0, Saying::Text("a\"b"), &finish);
        Document::parse(&edits.apply()).expect("JSON is left");
    }
}

fn edit(
    dialect: &'static dyn Dialect,
    form: AnswerForm,
    answer: &[u8],
    size: usize,
    fault: &StreamFault,
) {
    let run = |size: usize| {
        let (steps, why) = match editor(fault, form, AnsweredCall::new(dialect)) {
            AnswerEditor::Whole(edit) => match edit(answer) {
                Ok(edited) => (edited.steps, None),
                Err(why) => return (answer.to_vec(), false, Some(why)),
            },
            AnswerEditor::Events(mut editor) => {
                let chunks = answer.chunks(size);
                let mut steps: Vec<_> = chunks.flat_map(|chunk| editor.push(chunk)).collect();
                steps.extend(editor.finish());
                assert_eq!(editor.touched(), editor.untouched_because().is_none());
                (steps, editor.untouched_because())
            }
        };
        let sent = steps.iter().flat_map(|step| match step {
            Step::Emit(bytes) => bytes.to_vec(),
            Step::Wait(_) | Step::End(_) | Step::Finish => Vec::new(),
        });
        (sent.collect::<Vec<u8>>(), why.is_none(), why)
    };
    let (sent, touched, why) = run(answer.len().max(1));
    let (sent_in_chunks, touched_in_chunks, _) = run(size);
    let told = || {
        let [answer, sent, chunked] =
            [answer, &sent, &sent_in_chunks].map(|bytes| String::from_utf8_lossy(bytes));
        format!("{fault:?} {form:?} in {size}\n{answer}\n--\n{sent}\n--\n{chunked}")
    };
    // While a text is held to be rewritten, what says nothing overtakes it.
    let same = match (form, fault) {
        (AnswerForm::Stream(framing), StreamFault::Rewrite(_)) => {
            let [mut sent, mut answer] = [&sent, answer].map(|bytes| events(framing, bytes));
            sent.sort_unstable();
            answer.sort_unstable();
            sent == answer
        }
        _ => sent == answer,
    };
    assert!(touched || same, "{}", told());
    assert_eq!(touched, why.is_none(), "{}", told());
    assert_eq!(touched, touched_in_chunks, "{}", told());
    let AnswerForm::Stream(framing) = form else {
        assert!(sent == sent_in_chunks, "{}", told());
        let is_json = |bytes: &[u8]| Document::parse(bytes).is_ok();
        let cut = matches!(fault, StreamFault::Cut { .. });
        assert!(cut || !is_json(answer) || is_json(&sent), "{}", told());
        return;
    };
    let same = events(framing, &sent) == events(framing, &sent_in_chunks);
    assert!(same, "{}", told());
}

/// What a client reads. Where a stream mixes its line breaks, the bytes of the last one may differ.
fn events(framing: Framing, sent: &[u8]) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(framing, usize::MAX);
    let mut frames = splitter.push(sent);
    frames.extend(splitter.finish());
    let data = frames.iter().filter_map(|frame| frame.data());
    data.map(|data| data.into_owned()).collect()
}

fn fault(kind: u8, parameter: u8) -> StreamFault {
    let tokens = u64::from(parameter % 8);
    let choice = u64::from(parameter);
    let wait = Duration::from_millis(tokens);
    match kind % 16 {
        0 => StreamFault::Truncate { max_tokens: tokens },
        1 => StreamFault::Cut {
            after_tokens: tokens,
        },
        2 => StreamFault::Slow {
            time_to_first_token: wait,
            tokens_per_second: (tokens > 0).then_some(10.0),
        },
        3 => StreamFault::Stall {
            after_tokens: tokens,
            wait,
        },
        4 => StreamFault::Error {
            after_tokens: tokens,
            error: model_error(kind / 16, parameter),
        },
        5 => StreamFault::Repeat,
        6 => StreamFault::Unterminated,
        7 => StreamFault::WholeForStream,
        8 => StreamFault::Instead(Instead::Nothing),
        9 => StreamFault::Instead(Instead::Filtered),
        10 => StreamFault::Instead(Instead::Refusal { choice }),
        11 => StreamFault::Instead(Instead::Garbage { choice }),
        12 => StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
            CallError::UnknownTool,
            choice,
        ))),
        13 => StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
            CallError::MalformedArguments,
            choice,
        ))),
        14 => StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
            CallError::WrongArguments,
            choice,
        ))),
        _ => StreamFault::Rewrite(Rewrite::Drift(ResponseDrift {
            kind: match kind / 16 % 5 {
                0 => TextDrift::FieldNames,
                1 => TextDrift::Length {
                    factor: 2.0,
                    compress: parameter.is_multiple_of(2),
                },
                2 => TextDrift::Format,
                3 => TextDrift::Refusal,
                _ => TextDrift::Tone,
            },
            severity: match parameter % 3 {
                0 => Severity::Subtle,
                1 => Severity::Moderate,
                _ => Severity::Significant,
            },
            choice,
        })),
    }
}

fn model_error(kind: u8, parameter: u8) -> ModelError {
    match kind % 11 {
        0 => ModelError::RateLimit {
            scope: LimitScope::Tokens,
            retry_after: Some(Duration::from_millis(u64::from(parameter) * 100)),
            figures: None,
        },
        1 => ModelError::QuotaExhausted,
        2 => ModelError::ContextLength,
        3 => ModelError::ContentFilter,
        4 => ModelError::Auth,
        5 => ModelError::ModelNotFound,
        6 => ModelError::Timeout,
        7 => ModelError::ServerError {
            status: 500 + u16::from(parameter % 100),
        },
        8 => ModelError::PreviousResponse,
        9 => ModelError::ConnectionLimit,
        _ => ModelError::Overloaded,
    }
}
