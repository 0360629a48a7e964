//! Options of log and exec, checked before a node is asked.

use super::*;
use crate::streaming::log::Options;

async fn refused(streams: &Streams, subresource: &str, query: &str, user: &User) -> (u16, String) {
    let uri = format!("/api/v1/namespaces/web/pods/p/{subresource}?{query}");
    let parts = http::Request::get(uri).body(()).unwrap().into_parts().0;
    let query = Query::parse(query);
    let info = info(subresource);
    match streams.connect(parts, &query, &info, user).await {
        Ok(response) => (response.status().as_u16(), String::new()),
        Err(status) => (status.code, status.message),
    }
}

#[test]
fn log_options_are_checked_as_upstream_checks_them() {
    let check = |query: &str| {
        let error = Options::read(&Query::parse(query), "p").unwrap_err();
        format!("{} {}", error.code, error.message)
    };
    expect_test::expect![[r#"
        422 PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0
        422 PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0
        422 PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0
        422 PodLogOptions "p" is invalid: : Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified
        422 PodLogOptions "p" is invalid: stream: Unsupported value: "x": supported values: "All", "Stderr", "Stdout"
        400 strconv.ParseInt: parsing "x": invalid syntax
        400 parsing time "x" as "2006-01-02T15:04:05Z07:00" failed"#]]
    .assert_eq(
        &[
            "tailLines=-1",
            "limitBytes=0",
            "sinceSeconds=0",
            "sinceSeconds=1&sinceTime=2026-01-01T00%3A00%3A00Z",
            "stream=x",
            "tailLines=x",
            "sinceTime=x",
        ]
        .map(check)
        .join("\n"),
    );
    let all = "container=c&follow=true&previous=0&timestamps&tailLines=0&limitBytes=1&stream=All";
    assert!(Options::read(&Query::parse(all), "p").is_ok());
}

#[tokio::test]
async fn the_container_is_found_or_asked_for() {
    let two = streams(&["a", "b"], "n1");
    assert_eq!(
        refused(&two, "log", "", &admin()).await,
        (
            400,
            "a container name must be specified for pod p, choose one of: [init a b]".into()
        )
    );
    assert_eq!(
        refused(&two, "log", "container=c", &admin()).await,
        (400, "container c is not valid for pod p".into())
    );
    let not_there = (503, "node \"n1\" is not connected".to_owned());
    assert_eq!(
        refused(&two, "log", "container=init", &admin()).await,
        not_there
    );
    let one = streams(&["a"], "n1");
    assert_eq!(refused(&one, "log", "", &admin()).await, not_there);
    assert_eq!(
        refused(&one, "exec", "stdout=1&command=ls", &admin()).await,
        not_there
    );
}

#[tokio::test]
async fn a_pod_without_a_node_has_no_log_and_runs_nothing() {
    let waiting = streams(&["a"], "");
    assert_eq!(
        refused(&waiting, "log", "", &admin()).await,
        (200, String::new())
    );
    assert_eq!(
        refused(&waiting, "exec", "stdout=1", &admin()).await,
        (400, "pod p does not have a host assigned".into())
    );
    assert_eq!(
        refused(&streams(&["a"], "n1"), "attach", "", &admin()).await,
        (
            400,
            "you must specify at least 1 of stdin, stdout, stderr".into()
        )
    );
}

#[tokio::test]
async fn a_get_is_no_way_around_the_right_to_create() {
    let (code, message) = refused(
        &streams(&["a"], "n1"),
        "exec",
        "stdout=1",
        &User::named("jane"),
    )
    .await;
    assert_eq!(code, 403);
    assert!(
        message.contains("cannot create resource \"pods/exec\""),
        "{message}"
    );
}

#[test]
fn queries_are_decoded_and_encoded() {
    let query =
        Query::parse("command=sh&command=-c&command=echo+%27a%26b%27&tty&x=%zz&y=%e2%82%ac");
    let commands: Vec<&str> = query.all("command").collect();
    assert_eq!(commands, ["sh", "-c", "echo 'a&b'"]);
    assert!(query.flag("tty"));
    assert!(!query.flag("stdin"));
    assert_eq!(
        query.text("x"),
        "",
        "what is no escape is left out, as Go does"
    );
    assert_eq!(query.text("y"), "€");
    assert_eq!(Query::parse(&query.to_string()), query);
}
