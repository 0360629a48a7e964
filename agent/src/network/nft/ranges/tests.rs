//! Ranges brought together, cut and counted on.

use super::{Range, merged, predecessor, successor, without};
use crate::network::subnet::Subnet;

/// `10.0.0.0/8 10.1.2.3-10.1.2.9` and the like.
fn ranges(text: &str) -> Vec<Range> {
    text.split_whitespace()
        .map(|word| match word.split_once('/') {
            Some(_) => Subnet::parse(word).unwrap().into(),
            None => {
                let (first, last) = word.split_once('-').unwrap_or((word, word));
                Range {
                    first: first.parse().unwrap(),
                    last: last.parse().unwrap(),
                }
            }
        })
        .collect()
}

fn text(ranges: &[Range]) -> String {
    let one = |range: &Range| format!("{}-{}", range.first, range.last);
    ranges.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn ranges_that_overlap_or_touch_are_one() {
    for (given, expected) in [
        ("", ""),
        (
            "10.1.0.0/24 10.0.0.0/24",
            "10.0.0.0-10.0.0.255 10.1.0.0-10.1.0.255",
        ),
        ("10.0.1.0/24 10.0.0.0/24", "10.0.0.0-10.0.1.255"),
        ("10.0.0.0/8 10.1.2.3 11.0.0.0", "10.0.0.0-11.0.0.0"),
        ("0.0.0.0/0 255.255.255.255", "0.0.0.0-255.255.255.255"),
        (
            "::/0 fd00::/8",
            "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ),
        (
            "255.255.255.255 ::/128",
            "255.255.255.255-255.255.255.255 ::-::",
        ),
    ] {
        assert_eq!(text(&merged(ranges(given))), expected, "{given}");
    }
}

#[test]
fn exceptions_are_cut_out() {
    for (given, except, expected) in [
        ("10.0.0.0/24", "", "10.0.0.0-10.0.0.255"),
        ("10.0.0.0/24", "10.0.0.0/25", "10.0.0.128-10.0.0.255"),
        ("10.0.0.0/24", "10.0.0.128/25", "10.0.0.0-10.0.0.127"),
        (
            "10.0.0.0/24",
            "10.0.0.7 10.0.0.9-10.0.0.10",
            "10.0.0.0-10.0.0.6 10.0.0.8-10.0.0.8 10.0.0.11-10.0.0.255",
        ),
        ("10.0.0.0/24", "10.0.0.0/8 fd00::/8", ""),
        (
            "0.0.0.0/0",
            "0.0.0.0 255.255.255.255",
            "0.0.0.1-255.255.255.254",
        ),
        ("fd00::/126", "fd00::1", "fd00::-fd00:: fd00::2-fd00::3"),
        ("10.0.0.0/24", "10.0.1.0/24", "10.0.0.0-10.0.0.255"),
    ] {
        let rest = without(ranges(given), ranges(except));
        assert_eq!(text(&rest), expected, "{given} without {except}");
    }
}

#[test]
fn a_prefix_that_is_too_long_is_no_network() {
    assert_eq!(Subnet::new("10.0.0.0".parse().unwrap(), 33), None);
    assert_eq!(Subnet::new("::".parse().unwrap(), 129), None);
}

#[test]
fn numbers_of_many_bytes_are_counted_on() {
    assert_eq!(successor(&[0, 255, 255]), Some(vec![1, 0, 0]));
    assert_eq!(successor(&[255, 255]), None);
    assert_eq!(predecessor(&[1, 0, 0]), Some(vec![0, 255, 255]));
    assert_eq!(predecessor(&[0, 0]), None);
}
