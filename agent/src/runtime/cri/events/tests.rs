//! Comparing two looks.

use super::{Alive, Change, Seen, compare};

fn seen(text: &str) -> Seen {
    let one = |word: &str| {
        let (id, is_running) = match word.strip_suffix('*') {
            Some(id) => (id, true),
            None => (word, false),
        };
        let alive = Alive {
            uid: "u".into(),
            sandbox: "s".into(),
            is_running,
        };
        (id.to_owned(), alive)
    };
    text.split_whitespace().map(one).collect()
}

fn changes(before: &str, now: &str) -> Vec<(String, Change)> {
    let mut changes = compare(&seen(before), &seen(now));
    changes.sort_by(|left, right| left.0.cmp(&right.0));
    changes
}

#[test]
fn what_runs_now_has_started_and_what_is_gone_has_ended() {
    let started = |id: &str| (id.to_owned(), Change::Started);
    let ended = |id: &str| (id.to_owned(), Change::Ended);
    assert_eq!(changes("a* b", "a* b"), []);
    assert_eq!(changes("a", "a* b* c"), [started("a"), started("b")]);
    assert_eq!(changes("a* b c*", "c*"), [ended("a"), ended("b")]);
}
