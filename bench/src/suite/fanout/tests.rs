use super::*;

fn body(chunks: &'static [&'static str]) -> Response<Body> {
    Response::new(Body::from(chunks.concat().into_bytes()))
}

#[test]
fn an_event_is_known_by_the_name_of_its_object() {
    let line = br#"{"type":"ADDED","object":{"metadata":{"name":"c-17","x":1}}}"#;
    assert_eq!(named(line), Some(17));
    assert_eq!(named(br#"{"metadata":{"name":"kube-root-ca.crt"}}"#), None);
    assert_eq!(named(br#"{"metadata":{"name":"c-017"}}"#), None);
    assert_eq!(named(br#"{"metadata":{"name":"c-1"#), None);
}

#[tokio::test]
async fn a_watcher_ends_with_the_last_that_it_waits_for() {
    let answer = body(&[
        "{\"name\":\"c-4\"}\n{\"name\":\"c-5\"}\n",
        "{\"name\":\"c-6\"}\n",
    ]);
    let heard = follow(answer, 5..7).await;
    let numbers: Vec<_> = heard.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1]);
}

#[tokio::test]
async fn what_ends_early_was_not_heard() {
    assert_eq!(
        follow(body(&["{\"name\":\"c-5\"}\n{\"na"]), 5..7)
            .await
            .len(),
        1
    );
}

#[test]
fn deliveries_are_about_as_many_whoever_watches() {
    let shapes: Vec<_> = cases(1_000, 10, 1_000, None)
        .iter()
        .map(|case| (case.watchers, case.creates, connections(case.watchers)))
        .collect();
    assert_eq!(shapes, [(1, 1_000, 1), (100, 500, 2), (1_000, 50, 20)]);
}

#[test]
fn a_round_at_a_rate_is_short() {
    let shapes: Vec<_> = cases(1_000, 10, 1_000, Some(1))
        .iter()
        .map(|case| (case.name(), case.creates))
        .collect();
    let name = |watchers| format!("events to {watchers} watchers, 1 creates/s");
    assert_eq!(shapes, [(name(1), 20), (name(100), 20), (name(1_000), 20)]);
}
