//! What is written for a series of events, as text; and that it reaches the server.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::correlate::{Correlator, Observed, Source, Write};
use super::*;
use crate::fake_api::{FakeApi, eventually};

fn object(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(format!("uid-{name}")),
        ..ObjectReference::default()
    }
}

/// Each event is a second, an object and a message.
fn check(events: impl IntoIterator<Item = (i64, &'static str, String)>, expected: Expect) {
    let source = Source {
        component: "kubelet".to_owned(),
        host: "n1".to_owned(),
    };
    let mut correlator = Correlator::new(source);
    let mut text = String::new();
    for (second, name, message) in events {
        let observed = Observed {
            object: object(name),
            event_type: EventType::Normal,
            reason: "Pulled".to_owned(),
            message,
            annotations: BTreeMap::new(),
            at: Timestamp::from_second(1_700_000_000 + second).unwrap(),
        };
        let (word, event) = match correlator.correlate(observed) {
            None => {
                writeln!(text, "{second}: muted").unwrap();
                continue;
            }
            Some(Write::Create(event)) => ("create", event),
            Some(Write::Count(event)) => ("count", event),
        };
        let seconds = |time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
            time.unwrap().0.as_second() - 1_700_000_000
        };
        writeln!(
            text,
            "{second}: {word} x{} {}..{} {}",
            event.count.unwrap(),
            seconds(event.first_timestamp),
            seconds(event.last_timestamp),
            event.message.unwrap(),
        )
        .unwrap();
    }
    expected.assert_eq(&text);
}

#[test]
fn the_same_event_is_counted() {
    check(
        [
            (0, "web", "a".into()),
            (5, "web", "a".into()),
            (5, "db", "a".into()),
            (9, "web", "b".into()),
        ],
        expect![[r#"
            0: create x1 0..0 a
            5: count x2 0..5 a
            5: create x1 5..5 a
            9: create x1 9..9 b
        "#]],
    );
}

#[test]
fn a_flood_of_similar_events_is_combined() {
    check(
        (0..12).map(|n| (n, "web", format!("message {n}"))),
        expect![[r#"
            0: create x1 0..0 message 0
            1: create x1 1..1 message 1
            2: create x1 2..2 message 2
            3: create x1 3..3 message 3
            4: create x1 4..4 message 4
            5: create x1 5..5 message 5
            6: create x1 6..6 message 6
            7: create x1 7..7 message 7
            8: create x1 8..8 message 8
            9: create x1 9..9 (combined from similar events): message 9
            10: count x2 9..10 (combined from similar events): message 10
            11: count x3 9..11 (combined from similar events): message 11
        "#]],
    );
}

#[test]
fn an_object_that_causes_too_many_is_muted_for_a_while() {
    let burst = (0..27)
        .map(|_| (0, "web", "a".to_owned()))
        .collect::<Vec<_>>();
    let events = burst
        .into_iter()
        .chain([(0, "db", "a".into()), (300, "web", "a".into())]);
    let source = Source {
        component: "kubelet".to_owned(),
        host: String::new(),
    };
    let mut correlator = Correlator::new(source);
    let written: Vec<bool> = events
        .map(|(second, name, message)| {
            let observed = Observed {
                object: object(name),
                event_type: EventType::Warning,
                reason: "BackOff".to_owned(),
                message,
                annotations: BTreeMap::new(),
                at: Timestamp::from_second(second).unwrap(),
            };
            correlator.correlate(observed).is_some()
        })
        .collect();
    assert_eq!(
        written.iter().take(27).filter(|written| **written).count(),
        25
    );
    assert_eq!(
        written[27..],
        [true, true],
        "another object, and after five minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_is_created_counted_and_made_again_when_it_is_gone() {
    let api = FakeApi::new();
    let clock = Clock::starting_at(Timestamp::from_second(1_700_000_000).unwrap());
    let recorder = Recorder::with_clock(api.client(), "kubelet", "n1", clock);
    let record = || recorder.event(&object("web"), EventType::Normal, "Started", "Started web");
    let count = || {
        api.objects("/api/v1/events")
            .first()
            .map(|event| event["count"].clone())
    };
    record();
    eventually("created", || count() == Some(1.into())).await;
    record();
    eventually("counted", || count() == Some(2.into())).await;
    let event = api.objects("/api/v1/events").remove(0);
    let name = event["metadata"]["name"].as_str().unwrap().to_owned();
    expect![[r#"["kubelet","n1","kubelet","n1","Started","Normal","2023-11-14T22:13:20Z","web"]"#]]
        .assert_eq(
            &serde_json::json!([
                event["source"]["component"],
                event["source"]["host"],
                event["reportingComponent"],
                event["reportingInstance"],
                event["reason"],
                event["type"],
                event["firstTimestamp"],
                event["involvedObject"]["name"],
            ])
            .to_string(),
        );
    api.delete(&format!("/api/v1/namespaces/default/events/{name}"));
    record();
    eventually("made again", || count() == Some(3.into())).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_delays_events_and_loses_none() {
    let api = FakeApi::new();
    api.refuse(&[503, 500, 503]);
    let recorder = Recorder::new(api.client(), "kubelet", "n1");
    recorder.event(&object("web"), EventType::Warning, "Failed", "no image");
    eventually("written", || api.objects("/api/v1/events").len() == 1).await;
}
