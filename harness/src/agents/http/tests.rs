use serde_json::json;

use super::super::testing::{Reply, Server, driver_of as driver, json as answers};
use super::*;
use crate::prompt::Prompt;

fn invocation(prompt: Prompt) -> Invocation {
    Invocation {
        prompt,
        change: None,
        place: InvocationPlace::shared("cell-1"),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        conversation: "c1".into(),
    }
}

async fn ask(fields: &str, prompt: &str) -> Result<AgentAnswer, AskError> {
    driver(fields)
        .ask(&invocation(Prompt::single(prompt)))
        .await
}

/// An address that refuses connections while the socket is held.
fn nobody() -> (tokio::net::TcpSocket, std::net::SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    let any = "127.0.0.1:0".parse().expect("an address");
    socket.bind(any).expect("bound");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

#[tokio::test]
async fn an_answer_that_is_not_read_whole_cannot_be_judged() {
    let server = Server::start(vec![answers(&"x".repeat(9 << 20))]).await;
    let told = ask(&format!("endpoint: '{}'", server.url), "hi").await;
    assert_eq!(told, Err(AskError::TooLong));
}

#[tokio::test]
async fn a_coding_that_was_not_asked_for_is_the_agents_error() {
    let coded = Reply::Raw("content-encoding: gzip".to_owned(), b"x".to_vec());
    let server = Server::start(vec![coded]).await;
    let answer = ask(&format!("endpoint: '{}'", server.url), "hi").await;
    let error = answer.expect("an answer").error.expect("an error");
    assert!(error.contains("`content-encoding: gzip`"), "{error}");
    assert_eq!(server.requests()[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn an_answer_is_read_in_its_charset() {
    for (media_type, body) in [
        ("text/plain; charset=iso-8859-1", &b"gr\xfc\xdfe"[..]),
        (
            "text/plain; format=flowed; Charset=\"windows-1252\"",
            b"gr\xfc\xdfe",
        ),
        ("text/plain; charset=utf-16le", b"g\0r\0\xfc\0\xdf\0e\0"),
        ("text/plain; charset=utf-8", "gr\u{fc}\u{df}e".as_bytes()),
        ("text/plain", "gr\u{fc}\u{df}e".as_bytes()),
        ("text/plain", b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe"),
        ("text/plain; charset=klingon", "gr\u{fc}\u{df}e".as_bytes()),
        (
            "application/json; charset=iso-8859-1",
            b"{\"output\":\"gr\xfc\xdfe\"}",
        ),
        // JSON is UTF-8 despite its charset, if it is valid.
        (
            "application/json; charset=iso-8859-1",
            b"{\"output\":\"gr\xc3\xbc\xc3\x9fe\"}",
        ),
        (
            "application/json",
            b"\xef\xbb\xbf{\"output\":\"gr\xc3\xbc\xc3\x9fe\"}",
        ),
    ] {
        let reply = Reply::Raw(format!("content-type: {media_type}"), body.to_vec());
        let server = Server::start(vec![reply]).await;
        let answer = ask(&format!("endpoint: '{}/'", server.url), "x").await;
        let answer = answer.expect("asked");
        assert_eq!(
            (answer.text.as_str(), answer.error),
            ("gr\u{fc}\u{df}e", None),
            "{media_type}"
        );
    }
}

#[tokio::test]
async fn a_prompt_is_sent_and_the_answer_found() {
    let server = Server::start(vec![answers(r#"{"output": "hi there"}"#)]).await;
    let answer = ask(
        &format!("endpoint: '{}/invoke?tenant=acme'", server.url),
        "say \"hi\"",
    )
    .await;
    let answer = answer.expect("asked");
    assert_eq!((answer.text.as_str(), answer.error), ("hi there", None));
    let asked = &server.requests()[0];
    assert_eq!(asked.line, "POST /invoke?tenant=acme HTTP/1.1");
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("baggage"), Some("squall.scope=cell-1"));
    assert!(
        asked
            .header("traceparent")
            .is_some_and(|trace| trace.starts_with("00-0af7"))
    );
    assert_eq!(asked.body, json!({ "input": "say \"hi\"" }).to_string());
}

#[tokio::test]
async fn template_path_parameters_and_headers_are_honoured() {
    let reply = r#"{"choices": [{"message": {"content": "ok"}}]}"#;
    let server = Server::start(vec![answers(reply)]).await;
    let fields = format!(
        "endpoint: '{}/v2?a=b', method: PUT, request_template: '{{\"m\": \"{{prompt}}\"}}', \
         response_path: '$.choices[0].message.content', query_params: {{v: '2 3'}}, \
         headers: {{X-Team: blue, Content-Type: application/vnd.x+json}}",
        server.url
    );
    let answer = ask(&fields, "q\"1").await.expect("asked");
    assert_eq!(answer.text, "ok");
    let asked = &server.requests()[0];
    assert_eq!(asked.line, "PUT /v2?a=b&v=2+3 HTTP/1.1");
    assert_eq!(asked.header("content-type"), Some("application/vnd.x+json"));
    assert_eq!(asked.header("x-team"), Some("blue"));
    assert_eq!(asked.body, r#"{"m":"q\"1"}"#);
}

#[tokio::test]
async fn what_is_put_into_a_form_stays_in_its_own_value() {
    let server = Server::start(vec![answers("{}")]).await;
    let fields = format!(
        "endpoint: '{}', request_template: 'q={{prompt}}&n=1', headers: {{Content-Type: application/x-www-form-urlencoded}}",
        server.url
    );
    ask(&fields, "a b&c=d").await.expect("an answer");
    assert_eq!(server.requests()[0].body, "q=a%20b%26c%3Dd&n=1");
}

#[tokio::test]
async fn a_get_carries_the_prompt_in_its_query() {
    for (template, expected) in [
        (
            "request_template: 'q={prompt}'",
            "GET /s?lang=en&q=a+%26+b HTTP/1.1",
        ),
        (
            "request_template: '{prompt}'",
            "GET /s?lang=en&q=a+%26+b HTTP/1.1",
        ),
        (
            "request_template: '{\"query\": \"{prompt}\", \"lang\": \"de\"}'",
            "GET /s?query=a+%26+b&lang=de HTTP/1.1",
        ),
        ("timeout: 5000", "GET /s?lang=en&input=a+%26+b HTTP/1.1"),
        (
            "request_template: 'q={prompt}&lang=fr&lang=de'",
            "GET /s?q=a+%26+b&lang=fr&lang=de HTTP/1.1",
        ),
    ] {
        let server = Server::start(vec![answers("\"ok\"")]).await;
        let fields = format!(
            "endpoint: '{}/s', method: GET, query_params: {{lang: en}}, {template}",
            server.url
        );
        assert_eq!(ask(&fields, "a & b").await.expect("asked").text, "ok");
        assert_eq!(server.requests()[0].line, expected, "{template}");
    }
}

#[tokio::test]
async fn turns_are_asked_in_order_with_one_conversation() {
    let server = Server::start(vec![answers("\"one\""), answers("\"two\"")]).await;
    let driver = driver(&format!("endpoint: '{}/'", server.url));
    let prompt = Prompt::conversation(vec!["Hi".into(), "And now?".into()]).expect("turns");
    let answer = driver.ask(&invocation(prompt)).await.expect("asked");
    assert_eq!(answer.text, "two");
    let bodies: Vec<_> = server
        .requests()
        .into_iter()
        .map(|asked| asked.body)
        .collect();
    let expected = ["Hi", "And now?"]
        .map(|turn| json!({ "input": turn, "conversation_id": "c1" }).to_string());
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn an_agents_own_failure_is_an_answer_with_an_error() {
    let with = |status, body: &str| Reply::With(status, "application/json", body.to_owned());
    for (reply, text, error, broke_off) in [
        (
            with(503, r#"{"detail": "down"}"#),
            r#"{"detail": "down"}"#,
            "the agent answered with status 503",
            false,
        ),
        (
            with(302, ""),
            "",
            "the agent answered with status 302",
            false,
        ),
        (
            with(200, r#"{"error": "no"}"#),
            r#"{"error": "no"}"#,
            "the agent answered with `error`: no",
            false,
        ),
        (Reply::Nothing, "", "the answer broke off: ", true),
        (Reply::Half, "", "the answer broke off: ", true),
        (
            Reply::Cut("text/event-stream", "data: It is \n\n".to_owned()),
            "It is ",
            "the answer broke off: ",
            true,
        ),
        (
            Reply::With(
                200,
                "text/event-stream",
                "data: It is \n\nevent: error\ndata: boom\n\n".to_owned(),
            ),
            "It is ",
            "the agent's stream ended in an error: boom",
            false,
        ),
        (
            Reply::Never,
            "",
            "there was no answer within 1000 ms",
            false,
        ),
    ] {
        let told = format!("{reply:?}");
        let server = Server::start(vec![reply]).await;
        let fields = format!("endpoint: '{}/', timeout: 1000", server.url);
        let answer = ask(&fields, "x").await.expect("an answer");
        assert_eq!(
            (answer.text.as_str(), answer.broke_off),
            (text, broke_off),
            "{told}"
        );
        assert!(
            answer
                .error
                .as_deref()
                .is_some_and(|found| found.starts_with(error)),
            "{told}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn what_keeps_it_from_being_judged_is_told() {
    let server = Server::start(vec![answers(r#"{"reply": "x"}"#)]).await;
    let fields = format!("endpoint: '{}/', response_path: answer.text", server.url);
    let error = ask(&fields, "x").await.expect_err("not there");
    assert_eq!(
        error.to_string(),
        "`response_path: answer.text` has no `answer` to go to; the answer is {reply: a text}"
    );
    let fields = format!(
        "endpoint: '{}/', request_template: '{{nothing}}'",
        server.url
    );
    assert!(matches!(
        ask(&fields, "x").await,
        Err(AskError::Placeholder { .. })
    ));
    let (_held, address) = nobody();
    match ask(&format!("endpoint: 'http://{address}/'"), "x").await {
        Err(AskError::Unreachable { tries, .. }) => assert_eq!(tries, 3),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_reset_is_checked() {
    let ok = Server::start(vec![answers("{}")]).await;
    let reset = |url: &str| {
        driver(&format!(
            "endpoint: '{url}/', reset_endpoint: '{url}/reset'"
        ))
    };
    assert_eq!(
        reset(&ok.url)
            .reset(&InvocationPlace::shared("cell-1"))
            .await,
        Ok(())
    );
    let asked = &ok.requests()[0];
    assert_eq!(
        (asked.line.as_str(), asked.body.as_str()),
        ("POST /reset HTTP/1.1", "")
    );
    let broken = Server::start(vec![Reply::With(500, "text/plain", String::new())]).await;
    let refused = ResetError::Refused {
        endpoint: format!("{}/reset", broken.url),
        status: 500,
    };
    assert_eq!(
        reset(&broken.url)
            .reset(&InvocationPlace::shared("cell-1"))
            .await,
        Err(refused)
    );
    assert_eq!(
        driver(&format!("endpoint: '{}/'", broken.url))
            .reset(&InvocationPlace::shared("cell-1"))
            .await,
        Ok(())
    );
}

#[tokio::test]
async fn who_is_not_there_to_be_reset_is_not_there_to_be_asked() {
    let (_held, address) = nobody();
    let driver = driver(&format!(
        "endpoint: 'http://{address}/', reset_endpoint: 'http://{address}/reset'"
    ));
    match driver.reset(&InvocationPlace::shared("cell-1")).await {
        Err(ResetError::NotThere(AskError::Unreachable { endpoint, .. })) => {
            assert_eq!(endpoint, format!("http://{address}/reset"));
        }
        other => panic!("{other:?}"),
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_agent_whose_connections_hang_is_away_and_not_slow() {
    // Connections are not accepted and the backlog is full, so further ones get no response.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("bound");
    let listener = socket.listen(0).expect("listening");
    let address = listener.local_addr().expect("an address");
    let mut queued = Vec::new();
    for _ in 0..4 {
        let connecting = tokio::net::TcpStream::connect(address);
        let within = std::time::Duration::from_millis(200);
        queued.push(tokio::time::timeout(within, connecting).await);
    }
    assert!(queued.iter().any(Result::is_err), "the queue is full");
    let fields = format!("endpoint: 'http://{address}/', timeout: 1000");
    let error = ask(&fields, "x").await.expect_err("nobody there");
    assert!(
        matches!(error, AskError::Unreachable { tries: 1, .. }),
        "{error:?}"
    );
}
