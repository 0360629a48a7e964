use super::super::places::Place;
use super::{LINGER, Lost};
use coracle_client::ObjectKey;
use coracle_client::clock::{Clock, Instant};
use std::net::IpAddr;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

struct Bench {
    lost: Lost,
    places: Vec<Place>,
    /// What the Service has in its status.
    named: Vec<IpAddr>,
}

fn bench() -> Bench {
    let place = |(name, address): (&str, &str)| Place {
        name: name.to_owned(),
        addresses: vec![address.parse().unwrap()],
    };
    Bench {
        lost: Lost::default(),
        places: [
            ("a", "192.168.1.1"),
            ("b", "192.168.1.2"),
            ("c", "192.168.1.3"),
        ]
        .map(place)
        .into(),
        named: Vec::new(),
    }
}

impl Bench {
    /// The nodes that are named, and how long until one of them goes.
    fn pass(&mut self, ready: &str, now: Instant) -> (String, Option<Duration>) {
        let key = ObjectKey::new("default", "web");
        let ready = ready.split_whitespace().map(str::to_owned).collect();
        let local = self
            .lost
            .local(&key, (&self.places, &self.named), &ready, now);
        let of = self.places.iter();
        let of = of.filter(|place| local.nodes.contains(&place.name));
        self.named = of
            .clone()
            .flat_map(|place| place.addresses.clone())
            .collect();
        let names: Vec<_> = of.map(|place| place.name.as_str()).collect();
        (names.join(" "), local.until.map(|until| until - now))
    }
}

#[test]
fn nodes_with_ready_endpoints_are_named_and_others_go_after_a_while() {
    let (mut bench, start) = (bench(), Clock::system().monotonic());
    assert_eq!(bench.pass("", start), (String::new(), None), "none yet");
    assert_eq!(bench.pass("a", start), ("a".to_owned(), None));
    assert_eq!(bench.pass("a b elsewhere", start), ("a b".to_owned(), None));
    let lost = start + Duration::from_secs(60);
    assert_eq!(bench.pass("b", lost), ("a b".to_owned(), Some(LINGER)));
    // It comes back within the time, and nothing has changed.
    assert_eq!(bench.pass("a b", lost + TICK), ("a b".to_owned(), None));
    let lost = lost + LINGER;
    assert_eq!(bench.pass("b c", lost), ("a b c".to_owned(), Some(LINGER)));
    let later = bench.pass("b c", lost + LINGER - TICK);
    assert_eq!(later, ("a b c".to_owned(), Some(TICK)));
    assert_eq!(bench.pass("b c", lost + LINGER), ("b c".to_owned(), None));
}

#[test]
fn nodes_stay_while_none_has_a_ready_endpoint() {
    let (mut bench, start) = (bench(), Clock::system().monotonic());
    bench.pass("a b", start);
    let long = start + 10 * LINGER;
    assert_eq!(bench.pass("", start), ("a b".to_owned(), None));
    assert_eq!(bench.pass("", long), ("a b".to_owned(), None));
    // Those that lost theirs long ago go with the first that has one.
    assert_eq!(bench.pass("c", long), ("c".to_owned(), None));
    // One that takes no traffic any more has gone in any case.
    bench.pass("", long);
    bench.places.retain(|place| place.name != "c");
    assert_eq!(bench.pass("", long), (String::new(), None));
}

#[test]
fn what_went_is_forgotten() {
    let (mut bench, start) = (bench(), Clock::system().monotonic());
    bench.pass("a b", start);
    bench.pass("b", start);
    bench.lost.retain(|_| false);
    assert!(bench.lost.0.is_empty());
    let (_, until) = bench.pass("b", start + LINGER);
    assert_eq!(until, Some(LINGER), "counted from anew");
}
