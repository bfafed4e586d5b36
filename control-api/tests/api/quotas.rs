//! What one workspace uses up is there for the others; runs have theirs among their own tests.

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use squall_control_api::access::{Token, TokenRole};

use crate::bench::{self, Answer, Api};

/// Admins of two workspaces and of the default one, four of each: a token is good for 200 requests at once.
fn tokens() -> Vec<Token> {
    let of = |workspace: &str| {
        let workspace = workspace.to_owned();
        (0..4).map(move |n| {
            let secret = format!("{workspace}{n}");
            Token::new(secret.clone(), TokenRole::Admin, &secret).of_workspace(workspace.clone())
        })
    };
    ["default", "blue", "red"]
        .into_iter()
        .flat_map(of)
        .collect()
}

async fn ask(api: &Api, whose: &str, method: &str, path: &str, body: &Value) -> Answer {
    for n in 0..4 {
        let answer = bench::ask(api, &format!("{whose}{n}"), method, path, body).await;
        if answer.status != 429 {
            return answer;
        }
    }
    panic!("all tokens of {whose} are to wait");
}

/// Asks for more than the quota at once. Those that were taken; each of the others is told the limit, its
/// number and the way out.
async fn taken(
    api: &Api,
    method: &str,
    paths: &[String],
    body: &Value,
    limit: &str,
) -> Vec<Answer> {
    let asked = paths
        .iter()
        .map(|path| ask(api, "blue", method, path, body));
    // No more at once than the API takes.
    let answers: Vec<_> = stream::iter(asked).buffered(100).collect().await;
    let (taken, rest): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status < 300);
    for refused in rest {
        let problem = refused.problem(409, "conflict");
        assert_eq!(problem["detail"], limit);
    }
    taken
}

#[tokio::test]
async fn recordings_of_one_workspace_leave_room_for_the_others() {
    let api = Api::with_tokens(tokens());
    let paths = vec!["/v1/recordings".to_owned(); 17];
    let limit =
        "the workspace `blue` may have 16 recordings that run at a time; stop one of them first";
    let begun = taken(&api, "POST", &paths, &json!({}), limit).await;
    assert_eq!(begun.len(), 16);
    for other in ["red", "default"] {
        let begun = ask(&api, other, "POST", &paths[0], &json!({})).await;
        assert_eq!(begun.status, 201, "{other}: {begun:?}");
    }
    let stop = format!("{}/stop", begun[0].header("location"));
    assert_eq!(
        ask(&api, "blue", "POST", &stop, &Value::Null).await.status,
        200
    );
    let again = ask(&api, "blue", "POST", &paths[0], &json!({})).await;
    assert_eq!(again.status, 201, "{again:?}");
}

/// Fills the scopes of a workspace with something, and looks at those of the others.
async fn scopes_leave_room(what: &str, most: usize, body: &Value, limit: &str) {
    let api = Api::with_tokens(tokens());
    let path = |scope: &str| format!("/v1/scopes/{scope}/{what}");
    let paths: Vec<_> = (0..=most).map(|n| path(&format!("blue.{n}"))).collect();
    assert_eq!(taken(&api, "PUT", &paths, body, limit).await.len(), most);
    let again = taken(&api, "PUT", &paths, body, limit).await;
    assert_eq!(again.len(), most, "each may have another in its place");
    for (other, scope) in [("red", "red"), ("default", "job"), ("default", "default")] {
        let put = ask(&api, other, "PUT", &path(scope), body).await;
        assert_eq!(put.status, 200, "{scope}: {put:?}");
    }
    let ended = ask(&api, "blue", "DELETE", &paths[0], &Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    let put = ask(&api, "blue", "PUT", &path("blue"), body).await;
    assert_eq!(put.status, 200, "{put:?}");
}

#[tokio::test]
async fn tapes_of_one_workspace_leave_room_for_the_others() {
    let limit = "the workspace `blue` may have 64 scopes that play a tape at a time; take one of the \
                 tapes away first";
    scopes_leave_room("tape", 64, &json!({ "session": { "id": "s" } }), limit).await;
}

#[tokio::test]
async fn chaos_of_one_workspace_leaves_room_for_the_others() {
    let limit = "the workspace `blue` may have 256 scopes with chaos of their own at a time; end the chaos \
                 of one of them first";
    let inline = json!({ "chaos": { "tool_faults": [{ "mode": "error" }] } });
    scopes_leave_room("chaos", 256, &inline, limit).await;
}

#[tokio::test]
async fn profiles_of_one_workspace_leave_room_for_the_others() {
    let api = Api::with_tokens(tokens());
    let paths: Vec<_> = (0..=250).map(|n| format!("/v1/profiles/p{n}")).collect();
    let limit = "the workspace `blue` may have 250 profiles at a time; delete one of them first";
    let body = json!({ "chaos": {} });
    assert_eq!(taken(&api, "PUT", &paths, &body, limit).await.len(), 250);
    let again = taken(&api, "PUT", &paths, &json!({ "description": "new" }), limit).await;
    assert_eq!(again.len(), 250, "each may have another version");
    let put = ask(&api, "red", "PUT", &paths[0], &body).await;
    assert_eq!(put.status, 201, "{put:?}");
    let ended = ask(&api, "blue", "DELETE", &paths[0], &Value::Null).await;
    assert_eq!(ended.status, 204, "{ended:?}");
    let put = ask(&api, "blue", "PUT", "/v1/profiles/another", &body).await;
    assert_eq!(put.status, 201, "{put:?}");
}

#[tokio::test]
async fn profiles_of_one_workspace_have_a_limited_size() {
    let api = Api::with_tokens(tokens());
    let long = json!({ "description": "x".repeat(1_000_000) });
    let paths: Vec<_> = (0..5).map(|n| format!("/v1/profiles/p{n}")).collect();
    let limit =
        "the workspace `blue` may have 4194304 bytes of profiles at a time; delete a profile first";
    assert_eq!(taken(&api, "PUT", &paths, &long, limit).await.len(), 4);
    let put = ask(&api, "blue", "PUT", &paths[0], &long).await;
    assert_eq!(
        put.status, 200,
        "a new version replaces the old one: {put:?}"
    );
    let put = ask(&api, "red", "PUT", &paths[0], &long).await;
    assert_eq!(put.status, 201, "{put:?}");
}
