//! Rates between two requests.

use super::*;

#[test]
fn the_second_count_gives_a_rate() {
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    let one = |cpu_ns: u64| [("c".to_owned(), cpu_ns)];
    let mut rates = Rates::default();
    assert!(!rates.is_fresh(start));
    rates.count(one(1_000_000), start);
    assert_eq!(rates.nano_cores("c"), None);
    rates.count(one(51_000_000), at(100));
    assert_eq!(rates.nano_cores("c"), Some(500_000_000));
    // Too near: the last rate stands, and the next is counted from where it was.
    rates.count(one(90_000_000), at(110));
    assert_eq!(rates.nano_cores("c"), Some(500_000_000));
    // A count that began anew, and one that is too old.
    rates.count(one(5), at(300));
    assert_eq!(rates.nano_cores("c"), None);
    assert!(rates.is_fresh(at(60_000)) && !rates.is_fresh(at(61_000)));
    rates.count(one(500), at(61_000));
    assert_eq!(rates.nano_cores("c"), None);
    rates.count([], at(62_000));
    assert_eq!(rates.nano_cores("c"), None);
}
