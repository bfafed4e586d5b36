use std::fmt::Write as _;

use super::super::testing::{driver_in, folder_with};
use super::*;
use crate::prompt::Prompt;

const AGENT: &str = r#"
import asyncio, collections, os, subprocess, sys, time

seen = []

def echo(prompt):
    print("chatter")
    os.write(1, b"more chatter\n")
    subprocess.run(["echo", "chatter of a child"])
    assert sys.stdin.read() == ""
    return "you said " + prompt

async def later(prompt):
    await asyncio.sleep(0)
    return {"output": prompt.upper(), "steps": 3}

def starts_a_loop(prompt):
    return asyncio.run(later(prompt))

def remembers(prompt, conversation_id):
    seen.append((conversation_id, prompt))
    return " ".join(said for _, said in seen) + " in " + " ".join(sorted({c for c, _ in seen}))

def forget():
    seen.clear()

async def forget_later():
    seen.clear()

def refuse():
    return False

def fails(prompt):
    raise ValueError("no " + prompt)

def reports(prompt):
    return {"error": "the model is down"}

def dies(prompt):
    if prompt == "die":
        print("farewell", file=sys.stderr)
        sys.stderr.flush()
        os._exit(7)
    return str(os.getpid())

def leaves(prompt):
    sys.exit(3)

def hangs(prompt):
    if prompt == "hang":
        subprocess.run(["sleep", "600"])
    return str(os.getpid())

def environment(prompt):
    return " ".join(os.environ.get(name, "-") for name in prompt.split())

def pieces(prompt):
    yield from ["a ", prompt]

async def pieces_later(prompt):
    for piece in ["b ", prompt]:
        yield piece

class Message:
    def __init__(self, content):
        self.content = content

def blocks(prompt):
    return Message([{"type": "text", "text": prompt}, {"type": "image"}, "!"])

def odd(prompt):
    return [float("nan"), "\ud800", 1, None]

class Invoked:
    def invoke(self, prompt):
        return "invoked " + prompt

class Chain:
    def invoke(self, given):
        return {"text": "chained " + given["input"]}

chain = Chain()

class Graph:
    def get_input_jsonschema(self):
        return {"properties": {"messages": {}}}

    get_input_schema = None

    async def ainvoke(self, given, config):
        said = given["messages"][0]["content"] + " in " + config["configurable"]["thread_id"]
        return {"messages": [Message("no"), Message(said)]}

    def invoke(self, given):
        raise AssertionError("the other one is for those who wait")

graph = Graph()

class Model:
    def get_input_schema(self):
        class Schema:
            def model_json_schema():
                return {"anyOf": [{"type": "string"}, {"type": "array"}]}
        return Schema

    async def ainvoke(self, given, config):
        return Message("the model got " + given)

class Referring:
    def get_input_jsonschema(self):
        return {"$ref": '#/$defs/Question', "$defs": {"Question": {"properties": {"question": {}}}}}

    def get_input_schema(self):
        return None

    async def ainvoke(self, given, config):
        return "referred " + given["question"]

referring = Referring()

def long(prompt):
    return "x" * (9 << 20)

def make():
    return Model()
"#;

fn folder() -> tempfile::TempDir {
    folder_with("my_agent.py", AGENT)
}

fn driver(folder: &tempfile::TempDir, fields: &str) -> Box<dyn Driver> {
    driver_in(folder.path(), &format!("type: python, {fields}"))
}

fn invocation(scope: &str, turns: &[&str]) -> Invocation {
    Invocation {
        prompt: Prompt::conversation(turns.iter().map(|&turn| turn.to_owned()).collect())
            .expect("turns"),
        change: None,
        place: InvocationPlace::shared(scope),
        traceparent: "00-00-00-01".into(),
        conversation: format!("conversation-of-{scope}"),
    }
}

async fn asked(driver: &dyn Driver, scope: &str, turns: &[&str]) -> AgentAnswer {
    let answer = driver.ask(&invocation(scope, turns)).await;
    answer.expect("an answer")
}

#[tokio::test]
async fn an_answer_that_is_not_read_whole_cannot_be_judged() {
    let folder = folder();
    for agent in [
        driver(&folder, "endpoint: 'my_agent:long'"),
        driver_in(
            folder.path(),
            "type: command, command: [sh, -c, 'head -c 9000000 /dev/zero']",
        ),
    ] {
        let told = agent.ask(&invocation("a", &["hi"])).await;
        assert_eq!(told, Err(AskError::TooLong));
    }
}

#[tokio::test]
async fn whatever_the_object_is_the_answer_comes_back() {
    let folder = folder();
    for (fields, expected) in [
        ("endpoint: 'my_agent:echo'", "you said hi"),
        ("endpoint: 'my_agent:later'", "HI"),
        ("endpoint: 'my_agent:starts_a_loop'", "HI"),
        ("endpoint: 'my_agent:pieces'", "a hi"),
        ("endpoint: 'my_agent:pieces_later'", "b hi"),
        ("endpoint: 'my_agent:blocks'", "hi!"),
        ("endpoint: 'my_agent:Invoked'", "invoked hi"),
        ("endpoint: 'my_agent:graph'", "hi in conversation-of-a"),
        ("endpoint: 'my_agent:chain', type: langchain", "chained hi"),
        (
            "endpoint: 'my_agent:graph', type: langchain",
            "hi in conversation-of-a",
        ),
        (
            "endpoint: 'my_agent:make', type: langchain",
            "the model got hi",
        ),
        ("endpoint: 'my_agent:referring'", "referred hi"),
        ("endpoint: 'my_agent:odd'", r#"["nan","?",1,""]"#),
    ] {
        let fields = if fields.contains("type:") {
            fields.to_owned()
        } else {
            format!("type: python, {fields}")
        };
        let driver = driver_in(folder.path(), &fields);
        let answer = asked(&*driver, "a", &["hi"]).await;
        assert_eq!(
            (answer.text.as_str(), answer.error),
            (expected, None),
            "{fields}"
        );
    }
}

#[tokio::test]
async fn g8_a_worker_carries_its_scope_so_that_chaos_reaches_it_and_is_kept_warm() {
    let folder = folder();
    let driver = driver(&folder, "endpoint: 'my_agent:environment'");
    let names = "HTTP_PROXY SQUALL_SCOPE SQUALL_CONVERSATION TRACEPARENT";
    for scope in ["a", "b"] {
        let answer = asked(&*driver, scope, &[names]).await;
        let expected =
            format!("http://{scope}:x@127.0.0.1:1 {scope} conversation-of-{scope} 00-00-00-01");
        assert_eq!(answer.text, expected);
    }
    let driver = self::driver(&folder, "endpoint: 'my_agent:hangs'");
    let first = asked(&*driver, "a", &["which"]).await.text;
    assert_eq!(asked(&*driver, "a", &["which"]).await.text, first);
    assert_ne!(asked(&*driver, "b", &["which"]).await.text, first);
}

#[tokio::test]
async fn turns_share_a_conversation_and_a_reset_forgets_it() {
    let folder = folder();
    for (reset, expected) in [
        (
            "reset_function: 'my_agent:forget'",
            "three in conversation-of-a",
        ),
        (
            "reset_function: 'my_agent:forget_later'",
            "three in conversation-of-a",
        ),
        ("timeout: 5000", "one two three in conversation-of-a"),
    ] {
        let fields = format!("endpoint: 'my_agent:remembers', {reset}");
        let driver = driver(&folder, &fields);
        let answer = asked(&*driver, "a", &["one", "two"]).await;
        assert_eq!(answer.text, "one two in conversation-of-a");
        assert_eq!(driver.reset(&InvocationPlace::shared("a")).await, Ok(()));
        assert_eq!(
            asked(&*driver, "a", &["three"]).await.text,
            expected,
            "{reset}"
        );
    }
}

#[tokio::test]
async fn a_reset_that_does_not_succeed_is_told() {
    let folder = folder();
    for (function, expected) in [
        (
            "my_agent:refuse",
            "the reset by my_agent:refuse failed: it returned False",
        ),
        (
            "my_agent:gone",
            "the reset by my_agent:gone failed: AttributeError: module 'my_agent' has no attribute 'gone'",
        ),
    ] {
        let ours = format!("endpoint: 'my_agent:echo', reset_function: '{function}'");
        let of_others = format!("type: command, command: [cat], reset_function: '{function}'");
        for driver in [driver(&folder, &ours), driver_in(folder.path(), &of_others)] {
            let failed = driver
                .reset(&InvocationPlace::shared("a"))
                .await
                .expect_err("it fails");
            assert_eq!(failed.to_string(), expected);
        }
    }
}

#[tokio::test]
async fn what_the_agent_does_not_survive_is_an_error_of_that_invocation_only() {
    let folder = folder();
    let mut told = String::new();
    for (function, prompt) in [
        ("fails", "way"),
        ("reports", "x"),
        ("leaves", "x"),
        ("dies", "die"),
        ("hangs", "hang"),
    ] {
        let fields = format!("timeout: 1000, endpoint: 'my_agent:{function}'");
        let driver = driver(&folder, &fields);
        let answer = asked(&*driver, "a", &[prompt]).await;
        writeln!(told, "{function}: {}", answer.error.expect("an error")).expect("a text");
        let again = asked(&*driver, "a", &["again"]).await;
        let is_well = again.error.is_none();
        assert_eq!(
            is_well,
            ["dies", "hangs"].contains(&function),
            "{function}: {again:?}"
        );
    }
    let expected = "\
fails: the agent raised ValueError: no way (my_agent.py:34)
reports: the agent answered with `error`: the model is down
leaves: the agent raised SystemExit: 3 (my_agent.py:47)
dies: the agent's process ended with exit status: 7: farewell
hangs: there was no answer within 1000 ms
";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_agent_that_cannot_be_loaded_is_told() {
    let folder = folder();
    std::fs::write(
        folder.path().join("broken.py"),
        "import nothing_of_this_name\n",
    )
    .expect("written");
    let mut told = String::new();
    for endpoint in ["missing:agent", "my_agent:missing", "broken:agent"] {
        let driver = driver(&folder, &format!("endpoint: '{endpoint}'"));
        let failed = driver.ask(&invocation("a", &["hi"])).await;
        let failed = failed.expect_err("it cannot be loaded");
        writeln!(told, "{failed}").expect("a text");
    }
    let expected = "\
the agent cannot be reached at missing:agent: ModuleNotFoundError: No module named 'missing'
the agent cannot be reached at my_agent:missing: AttributeError: module 'my_agent' has no attribute 'missing'
the agent cannot be reached at broken:agent: ModuleNotFoundError: No module named 'nothing_of_this_name' (broken.py:1)
";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_invocation_that_is_given_up_leaves_no_process() {
    let folder = folder();
    let driver = driver(&folder, "endpoint: 'my_agent:hangs'");
    let id = asked(&*driver, "a", &["which"]).await.text;
    let waiting = invocation("a", &["hang"]);
    // It hangs once its child exists.
    let has_child = || {
        let children = format!("/proc/{id}/task/{id}/children");
        std::fs::read_to_string(children).is_ok_and(|children| !children.trim().is_empty())
    };
    let begun = async {
        while !has_child() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = driver.ask(&waiting) => panic!("it does not answer"),
        () = begun => {}
    }
    let status = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    while !(status().is_empty() || status().contains(") Z ")) {
        tokio::task::yield_now().await;
    }
    assert_ne!(asked(&*driver, "a", &["which"]).await.text, id);
}
