//! The counters as a scraper reads them.

use super::*;

fn lines(counts: &Counts) -> Vec<String> {
    let mut text = Text::default();
    counts.text(&mut text);
    let text = text.into_string();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.replace("horizontal_pod_autoscaler_controller_", ""))
        .collect()
}

#[test]
fn passes_are_counted_by_what_was_done_and_whose_fault_it_was() {
    let counts = Counts::default();
    for took_ms in [1, 3, 20_000] {
        let took = Duration::from_millis(took_ms);
        counts.pass(Action::of(2, 4), Fault::of(&Ok(())), took);
    }
    let failed = Err(ReconcileError::Version("a/b/c".to_owned()));
    counts.pass(Action::None, Fault::of(&failed), Duration::ZERO);
    let found = lines(&counts);
    let labels = r#"action="scale_up",error="none""#;
    for line in [
        &format!("reconciliations_total{{{labels}}} 3"),
        r#"reconciliations_total{action="none",error="spec"} 1"#,
        &format!(r#"reconciliation_duration_seconds_bucket{{{labels},le="0.001"}} 1"#),
        &format!(r#"reconciliation_duration_seconds_bucket{{{labels},le="0.002"}} 1"#),
        &format!(r#"reconciliation_duration_seconds_bucket{{{labels},le="0.004"}} 2"#),
        &format!(r#"reconciliation_duration_seconds_bucket{{{labels},le="16.384"}} 2"#),
        &format!(r#"reconciliation_duration_seconds_bucket{{{labels},le="+Inf"}} 3"#),
        &format!("reconciliation_duration_seconds_sum{{{labels}}} 20.004"),
        &format!("reconciliation_duration_seconds_count{{{labels}}} 3"),
    ] {
        assert!(found.iter().any(|one| one == line), "{line} in {found:#?}");
    }
}

#[test]
fn metrics_are_counted_by_their_kind_too() {
    let counts = Counts::default();
    let took = Duration::from_millis(5);
    counts.metric(Action::of(4, 2), Fault::None, "Pods", took);
    counts.metric(Action::None, Fault::Internal, "External", took);
    counts.metric(Action::None, Fault::Spec, "made up", took);
    let found = lines(&counts);
    for labels in [
        r#"action="scale_down",error="none",metric_type="Pods""#,
        r#"action="none",error="internal",metric_type="External""#,
        r#"action="none",error="spec",metric_type="""#,
    ] {
        let total = format!("metric_computation_total{{{labels}}} 1");
        assert!(found.contains(&total), "{total} in {found:#?}");
        let sum = format!("metric_computation_duration_seconds_sum{{{labels}}} 0.005");
        assert!(found.contains(&sum), "{sum} in {found:#?}");
    }
}

#[test]
fn an_autoscaler_that_is_gone_is_no_longer_shown() {
    let counts = Counts::default();
    let (web, db) = (ObjectKey::new("ns", "web"), ObjectKey::new("ns", "db"));
    counts.is_there(&web);
    counts.is_there(&db);
    counts.wants(&web, 4);
    let shown = |counts: &Counts| {
        let gauge = |line: &&String| line.starts_with("num_") || line.starts_with("desired_");
        lines(counts)
            .iter()
            .filter(gauge)
            .cloned()
            .collect::<Vec<_>>()
    };
    let wanted = r#"desired_replicas{namespace="ns",hpa_name="web"} 4"#;
    assert_eq!(shown(&counts), ["num_horizontal_pod_autoscalers 2", wanted]);
    counts.forget(&web);
    counts.wants(&web, 5);
    assert_eq!(shown(&counts), ["num_horizontal_pod_autoscalers 1"]);
}
