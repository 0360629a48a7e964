//! Bounds of the ring.

use super::*;

fn told(interval: Option<&str>, retention: Option<&str>) -> String {
    let read = ring(&RingArgs {
        snapshot_interval: interval.map(str::to_owned),
        snapshot_retention: retention.map(str::to_owned),
    });
    match read {
        Ok(ring) => format!("{:?} {}", ring.every, ring.kept),
        Err(bad) => bad.to_string(),
    }
}

#[test]
fn the_ring_has_bounds() {
    assert_eq!(told(None, None), "21600s 5");
    assert_eq!(told(Some("0"), Some("1")), "0ns 1");
    assert_eq!(told(Some("10s"), Some("1000")), "10s 1000");
    let short = "--snapshot-interval \"9s\": must be at least 10s, or 0";
    assert_eq!(told(Some("9s"), None), short);
    let none = "--snapshot-retention \"0\": must be a number of at least 1";
    assert_eq!(told(None, Some("0")), none);
    let many = "--snapshot-retention \"1001\": must be at most 1000";
    assert_eq!(told(None, Some("1001")), many);
}
