use super::{Bandwidth, EGRESS, INGRESS};
use std::collections::BTreeMap;

fn of(annotation: &str, value: &str) -> Result<Bandwidth, String> {
    let annotations = BTreeMap::from([(annotation.to_owned(), value.to_owned())]);
    Bandwidth::of(&annotations).map_err(|error| error.to_string())
}

#[test]
fn annotations_are_bits_a_second() {
    let none = Bandwidth::of(&BTreeMap::new()).unwrap();
    assert_eq!(none, Bandwidth::default());
    assert_eq!(of(INGRESS, "10M").unwrap().ingress, Some(1_250_000));
    let egress = of(EGRESS, "1Ki").unwrap();
    assert_eq!((egress.ingress, egress.egress), (None, Some(128)));
    assert_eq!(of("other", "-"), Ok(Bandwidth::default()));
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (value, expected) in [
        ("fast", "is no quantity"),
        ("999", "small"),
        ("2P", "large"),
    ] {
        let error = of(EGRESS, value).unwrap_err();
        assert!(
            error.contains(expected) && error.contains(EGRESS),
            "{error}"
        );
    }
}
