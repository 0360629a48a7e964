//! Counts of probes, as scrapers read them.

use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

#[test]
fn counts_end_with_their_probe() {
    let tallies = Tallies::default();
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some("web".into()),
            namespace: Some("n".into()),
            uid: Some("u".into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    };
    let shown = || {
        let mut text = Text::default();
        tallies.text(&mut text);
        text.into_string()
    };
    assert_eq!(shown(), "");
    let tally = tallies.of(&pod, "main", Kind::Readiness);
    tally.add(&Answer::Success, Duration::from_millis(500));
    tally.add(&Answer::Failure("no".into()), Duration::from_secs(1));
    let text = shown();
    let labels = "container=\"main\",namespace=\"n\",pod=\"web\"";
    let kind = "probe_type=\"Readiness\"";
    for line in [
        format!("prober_probe_duration_seconds_bucket{{{labels},{kind},le=\"0.25\"}} 0\n"),
        format!("prober_probe_duration_seconds_bucket{{{labels},{kind},le=\"0.5\"}} 1\n"),
        format!("prober_probe_duration_seconds_count{{{labels},{kind}}} 1\n"),
        format!("prober_probe_total{{{labels},pod_uid=\"u\",{kind},result=\"failed\"}} 1\n"),
        format!("prober_probe_total{{{labels},pod_uid=\"u\",{kind},result=\"successful\"}} 1\n"),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    drop(tally);
    assert_eq!(shown(), "");
}
