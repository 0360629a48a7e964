//! Silence of a node is counted by the clock of the server.

use serde_json::json;

use super::*;

const GRACES: Graces = Graces {
    monitor: Duration::from_secs(40),
    startup: Duration::from_secs(60),
};

fn node(heartbeat_s: Option<i64>) -> Node {
    let conditions: Vec<_> = heartbeat_s
        .map(|second| {
            let time = Timestamp::from_second(second).unwrap();
            json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": time })
        })
        .into_iter()
        .collect();
    let node = json!({ "metadata": { "name": "a" }, "status": { "conditions": conditions } });
    serde_json::from_value(node).unwrap()
}

fn within(seconds: u64) -> Silence {
    Silence::Within(Duration::from_secs(seconds))
}

struct Story {
    start: Instant,
    health: Health,
}

impl Story {
    fn of(node: &Node) -> Self {
        let start = Instant::now();
        let health = Health::new(node, start);
        Self { start, health }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    fn silence(&mut self, second: u64) -> Silence {
        self.health.silence(GRACES, self.at(second))
    }
}

#[test]
fn silence_counts_from_the_first_look_and_each_sign_of_life() {
    let mut story = Story::of(&node(Some(5)));
    assert_eq!(story.silence(0), within(40));
    story.health.saw_status(&node(Some(5)), story.at(10));
    assert_eq!(story.silence(10), within(30));
    story.health.saw_status(&node(Some(6)), story.at(20));
    assert_eq!(story.silence(20), within(40));
    let time = Timestamp::from_second(77).unwrap();
    story.health.saw_lease(Some(time), story.at(30));
    story.health.saw_lease(Some(time), story.at(40));
    story.health.saw_lease(None, story.at(41));
    assert_eq!(story.silence(60), within(10));
    assert_eq!(story.silence(70), Silence::TooLong);
}

#[test]
fn a_clock_that_goes_back_is_a_sign_of_life_too() {
    let mut story = Story::of(&node(Some(5000)));
    story.health.saw_status(&node(Some(5)), story.at(30));
    assert_eq!(story.silence(60), within(10));
}

#[test]
fn a_node_that_never_reported_has_longer() {
    let mut story = Story::of(&node(None));
    assert_eq!(story.silence(40), within(20));
    assert_eq!(story.silence(60), Silence::TooLong);
    story.health.saw_status(&node(Some(5)), story.at(61));
    assert_eq!(story.silence(61), within(40));
}

#[test]
fn the_time_this_process_slept_is_not_the_nodes_silence() {
    let mut story = Story::of(&node(Some(5)));
    assert_eq!(story.silence(10), within(30));
    assert_eq!(story.silence(1000), within(40)); // It was due at 40.
    assert_eq!(story.silence(1040), Silence::TooLong);
}

#[test]
fn what_is_forgiven_does_not_count() {
    let mut story = Story::of(&node(Some(5)));
    story.health.reset(story.at(39));
    assert_eq!(story.silence(40), within(39));
}
