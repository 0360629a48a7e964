//! One of each family at most, in their order.

use super::Families;
use std::net::IpAddr;

fn of(text: &str) -> Families<IpAddr> {
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

#[test]
fn the_first_of_each_family_stays_in_its_place() {
    let both = of("fd00::1 fd00::2 10.0.0.1 10.0.0.2");
    assert_eq!(both.to_string(), "fd00::1,10.0.0.1");
    assert_eq!(both.first(), "fd00::1".parse().ok());
    assert_eq!(both.of(true), "10.0.0.1".parse().ok());
    assert!(both.contains(&"10.0.0.1".parse().unwrap()));
    assert!(!both.contains(&"10.0.0.2".parse().unwrap()));
    let one = of("10.0.0.1 10.0.0.2");
    assert_eq!((one.iter().count(), one.of(false)), (1, None));
    assert!(of("").is_empty() && of("").to_string().is_empty());
}
