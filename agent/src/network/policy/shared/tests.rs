//! Who is woken, and what is given when.

use super::*;
use crate::network::policy::record::Pod;
use futures::FutureExt;

fn shared() -> Shared {
    Shared::new(State::default(), Source::Nothing)
}

fn here(address: &str) -> Here {
    Here {
        key: "shop/db".into(),
        pod: Pod {
            addresses: [address.parse().unwrap()].into(),
            ..Pod::default()
        },
    }
}

/// Who has been woken since the last time, in words.
fn woken(shared: &Shared) -> String {
    let all = [
        (&shared.changed, "kernel"),
        (&shared.news, "disk"),
        (&shared.new_rules, "disk-soon"),
    ];
    let woken = all.iter().filter(|(who, _)| {
        // One that waits takes the word.
        who.notified().now_or_never().is_some()
    });
    let names: Vec<_> = woken.map(|(_, name)| *name).collect();
    names.join(" ")
}

#[test]
fn what_is_heard_wakes_those_whom_it_concerns() {
    let shared = shared();
    let said = [
        (Heard::Begun, ""),
        (Heard::Rules { is_news: false }, ""),
        (Heard::Listed, "kernel disk-soon"),
        (Heard::Rules { is_news: true }, "kernel disk-soon"),
        (Heard::Peers { is_news: true }, "kernel disk"),
        (Heard::Peers { is_news: false }, ""),
        (Heard::Rules { is_news: false }, ""),
    ];
    for (heard, expected) in said {
        shared.hear(|_| heard);
        assert_eq!(woken(&shared), expected, "{heard:?}");
    }
    shared.set_here(&"l1".into(), Some(here("10.0.0.1")));
    assert_eq!(woken(&shared), "kernel");
}

#[test]
fn nothing_is_given_while_the_first_list_is_under_way() {
    let shared = shared();
    let number = shared.set_here(&"l1".into(), Some(here("10.0.0.1")));
    assert_eq!(shared.take(|_| ()), Some((number, ())));
    shared.hear(|_| Heard::Begun);
    let later = shared.set_here(&"l1".into(), None);
    assert_eq!(shared.take(|_| ()), None);
    shared.hear(|_| Heard::Peers { is_news: true });
    assert_eq!(shared.take(|_| ()), None);
    // A connection that ended before the list did.
    assert!(!woken(&shared).is_empty());
    shared.set_listing(false);
    assert_eq!(woken(&shared), "kernel");
    assert_eq!(shared.take(|_| ()), Some((later, ())));
    shared.hear(|_| Heard::Begun);
    assert_eq!(shared.take(|_| ()), None);
    shared.hear(|_| Heard::Listed);
    assert_eq!(shared.take(|_| ()), Some((later, ())));
    // What is known is enough to go on with while it is told again.
    shared.hear(|_| Heard::Begun);
    assert_eq!(shared.take(|_| ()), Some((later, ())));
}

#[tokio::test]
async fn who_asked_waits_for_all_that_was_asked_before() {
    let shared = shared();
    let first = shared.set_here(&"l1".into(), Some(here("10.0.0.1")));
    let (taken, ()) = shared.take(|_| ()).unwrap();
    let second = shared.set_here(&"l2".into(), Some(here("10.0.0.2")));
    assert!(taken >= first && second > taken);
    assert!(shared.applied(first).now_or_never().is_none());
    shared.has_applied(taken);
    shared.applied(first).await;
    assert!(shared.applied(second).now_or_never().is_none());
    shared.has_applied(shared.take(|_| ()).unwrap().0);
    shared.applied(second).await;
}

#[tokio::test]
async fn what_the_server_told_once_is_not_forgotten() {
    let shared = shared();
    assert!(shared.answer().now_or_never().is_none());
    // It says that it says nothing.
    shared.answered();
    shared.answer().await;
    assert_eq!(shared.source(), Source::Nothing);
    assert!(shared.reached(Source::Disk).now_or_never().is_none());
    shared.hear(|_| Heard::Begun);
    assert_eq!(shared.source(), Source::Nothing);
    shared.hear(|_| Heard::Listed);
    shared.reached(Source::Server).await;
    shared.reach(Source::Disk);
    assert_eq!(shared.source(), Source::Server);
}
