//! What is read of a node's answer.

use super::*;

const ANSWER: &str = "\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container=\"a\",namespace=\"ns\",pod=\"p\"} 1.5 1700000000123
container_cpu_usage_seconds_total{container=\"b\",namespace=\"ns\",pod=\"p\"} 2e-05 1700000000123
container_memory_working_set_bytes{container=\"a\",namespace=\"ns\",pod=\"p\"} 4.096e+06 1700000000123
container_start_time_seconds{container=\"a\",namespace=\"ns\",pod=\"p\"} 1.69999999e+09
node_cpu_usage_seconds_total 12.25 1700000000120
node_memory_working_set_bytes 1e+09 1700000000120
pod_cpu_usage_seconds_total{namespace=\"ns\",pod=\"p\"} 1.5 1700000000123
scrape_error 0
";

#[test]
fn containers_and_the_node_are_read_and_the_rest_is_not() {
    let batch = read(ANSWER);
    let node = Point {
        at_ms: 1_700_000_000_120,
        started_ms: None,
        cpu_ns: 12_250_000_000,
        memory_bytes: 1_000_000_000,
    };
    let container = Point {
        at_ms: 1_700_000_000_123,
        started_ms: Some(1_699_999_990_000),
        cpu_ns: 1_500_000_000,
        memory_bytes: 4_096_000,
    };
    assert_eq!(batch.node, Some(node));
    assert_eq!(batch.pods.len(), 1);
    let pod = &batch.pods[&("ns".to_owned(), "p".to_owned())];
    assert_eq!(pod["a"], Some(container));
    assert_eq!(pod["b"], None, "its memory was not told");
}

#[test]
fn a_foreign_order_of_labels_and_letters_that_are_escaped_are_read() {
    let line = r#"x{pod="p",odd="a\"b\\c\nd}",container="c"} 1 2"#;
    let sample = sample(line).unwrap();
    assert_eq!(sample.labels["odd"], "a\"b\\c\nd}");
    assert_eq!(sample.labels["container"], "c");
    assert_eq!((sample.value, sample.at_ms), (1.0, Some(2)));
}

#[test]
fn what_cannot_be_read_is_passed_over() {
    for line in [
        "",
        "# HELP x y",
        "x",
        "x{",
        "x{a=\"b} 1",
        "x{a=\"b\\",
        "x{a=\"b\"}",
        "x one",
        "{a=\"b\"} 1",
    ] {
        assert_eq!(sample(line), None, "{line:?}");
    }
    let labels = "a=\"\",".repeat(LABELS_MAX + 1);
    assert_eq!(sample(&format!("x{{{labels}}} 1")), None);
    for value in ["-1", "NaN", "+Inf", "1e300"] {
        let node = format!("{NODE_CPU} {value} 1\n{NODE_MEMORY} 1 1\n");
        assert_eq!(read(&node).node, None, "{value}");
    }
}
