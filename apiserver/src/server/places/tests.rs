//! Who gives up a place to whom.

use super::*;
use futures::FutureExt;

fn peer(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

#[track_caller]
fn take(places: &Arc<Places>, from: u8) -> Place {
    places.take(peer(from)).now_or_never().expect("a place")
}

fn is_taken(place: &Place) -> bool {
    place.taken().now_or_never().is_some()
}

#[test]
fn who_asked_for_nothing_goes_first_and_then_who_is_idle_longest() {
    let places = Places::new(3);
    let [idle, long_idle, stranger] = [1, 2, 3].map(|from| take(&places, from));
    drop(long_idle.work());
    drop(idle.work());
    let fourth = take(&places, 4);
    assert_eq!(
        [&idle, &long_idle, &stranger].map(is_taken),
        [false, false, true]
    );
    let at_work = fourth.work();
    let fifth = take(&places, 5);
    assert_eq!(
        [&idle, &long_idle, &fourth].map(is_taken),
        [false, true, false]
    );
    drop(fifth.work());
    let sixth = take(&places, 6);
    assert_eq!([&idle, &fourth, &fifth].map(is_taken), [true, false, false]);
    drop((at_work, sixth));
}

#[test]
fn who_is_at_work_keeps_their_place_until_they_end() {
    let places = Places::new(2);
    let [one, two] = [1, 2].map(|from| take(&places, from));
    let (of_one, of_two, more) = (one.work(), two.work(), two.work());
    let mut waiting = Box::pin(places.take(peer(3)));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(more);
    assert!(waiting.as_mut().now_or_never().is_none(), "it has another");
    drop(of_two);
    let third = waiting.now_or_never().expect("a place");
    assert_eq!([&one, &two, &third].map(is_taken), [false, true, false]);
    // What comes of one that left changes nothing.
    drop(two);
    let of_third = third.work();
    assert!(places.take(peer(4)).now_or_never().is_none());
    drop((of_one, of_third));
}

#[test]
fn an_address_that_has_most_places_gives_up_its_oldest() {
    let places = Places::new(4);
    let mut busy = Vec::new();
    for from in [7, 7, 7, 1] {
        let place = take(&places, from);
        busy.push((place.work(), place));
    }
    let newcomer = take(&places, 2);
    let taken: Vec<bool> = busy.iter().map(|(_, place)| is_taken(place)).collect();
    assert_eq!(taken, [true, false, false, false]);
    // Two of four are not more than half.
    let at_work = newcomer.work();
    assert!(places.take(peer(3)).now_or_never().is_none());
    drop(at_work);
}

#[test]
fn what_ends_leaves_nothing() {
    let places = Places::new(2);
    for from in 0..100 {
        let place = take(&places, from);
        drop(place.work());
    }
    let table = places.table.lock();
    assert!(table.held.is_empty() && table.of_peer.is_empty());
}
