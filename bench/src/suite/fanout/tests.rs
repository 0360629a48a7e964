use super::*;
use http_body::Frame;
use http_body_util::StreamBody;
use std::convert::Infallible;

fn body(chunks: &'static [&'static str]) -> impl BodyExt<Data: AsRef<[u8]>> + Unpin {
    let frames = chunks.iter().map(|chunk| Ok(Frame::data(chunk.as_bytes())));
    StreamBody::new(futures::stream::iter(
        frames.collect::<Vec<Result<_, Infallible>>>(),
    ))
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
        "{\"name\":\"c-4\"}\n{\"name\":\"c-",
        "5\"}\n{\"name",
        "\":\"c-6\"}\n",
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

#[tokio::test(start_paused = true)]
async fn a_watcher_that_hears_something_is_not_silent() {
    let most = SILENCE_MAX - Duration::from_secs(1);
    let lines = ["{\"name\":\"c-0\"}\n", "{\"name\":\"c-1\"}\n"];
    let heard = futures::stream::iter(lines).then(|line| async move {
        tokio::time::sleep(most).await;
        Ok::<_, Infallible>(Frame::data(line.as_bytes()))
    });
    let endless = heard.chain(futures::stream::pending());
    let begun = Instant::now();
    let heard = follow(StreamBody::new(Box::pin(endless)), 0..9).await;
    assert_eq!(heard.len(), 2);
    assert_eq!(
        begun.elapsed().as_secs(),
        (2 * most + SILENCE_MAX).as_secs()
    );
}

type Shape = (usize, usize, Option<Duration>);

fn shapes(count: usize, pace: Pace) -> Vec<Shape> {
    let cases = cases(count, 10, 1_000, pace);
    let shape = |case: &Fanout| (case.watchers, case.creates, case.every);
    cases.iter().map(shape).collect()
}

#[test]
fn deliveries_are_about_as_many_whoever_watches() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let expected = [
        (1, 1_000, None),
        (1, 1_000, ms(1)),
        (100, 500, None),
        (100, 200, ms(100)),
        (1_000, 50, None),
        (1_000, 20, ms(1_000)),
    ];
    assert_eq!(shapes(1_000, Pace::Events(1_000)), expected);
    let connections = WATCHERS.map(connections);
    assert_eq!(connections, [1, 2, 20]);
}

#[test]
fn creates_may_come_at_a_pace_of_their_own() {
    let every = Some(Duration::from_millis(500));
    let expected = [(1, 40, every), (100, 40, every), (1_000, 40, every)];
    let all = shapes(1_000, Pace::Creates(2));
    let paced: Vec<_> = all
        .iter()
        .copied()
        .filter(|shape| shape.2.is_some())
        .collect();
    assert_eq!(paced, expected);
    assert_eq!(shapes(7, Pace::Creates(2))[1], (1, 7, every));
}

#[test]
fn a_pace_is_told_in_events() {
    let names: Vec<_> = cases(1_000, 10, 100, Pace::Events(500))
        .iter()
        .map(Fanout::name)
        .collect();
    let expected = [
        "events to 1 watchers",
        "events to 1 watchers at 500/s",
        "events to 100 watchers",
        "events to 100 watchers at 500/s",
    ];
    assert_eq!(names, expected);
}
