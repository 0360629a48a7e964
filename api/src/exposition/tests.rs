//! Numbers and samples as scrapers read them.

use super::*;

#[test]
fn numbers_are_written_as_go_does() {
    let shown = [0.0, 1.0, 0.25, 123_456.0, 1_500_000.0, 1e-5, f64::INFINITY].map(go_number);
    assert_eq!(
        shown,
        ["0", "1", "0.25", "123456", "1.5e+06", "1e-05", "+Inf"]
    );
}

#[test]
fn a_sample_may_have_a_time_of_its_own() {
    let mut text = Text::default();
    text.sample_at("a_total", &[("pod", "x\"y")], 2, 1_700_000_000_123);
    assert_eq!(
        text.into_string(),
        "a_total{pod=\"x\\\"y\"} 2 1700000000123\n"
    );
    let mut text = Text::new(Format::OpenMetrics);
    text.sample_at("a_total", &[], 2, 1_700_000_000_123);
    assert_eq!(text.into_string(), "a_total 2 1700000000.123\n# EOF\n");
}
