//! The labels that dashboards select by.

use super::super::resource::tests::seen;
use super::*;

#[test]
fn containers_pods_and_the_machine_have_samples() {
    let seen = seen();
    let disks = HashMap::from([("c1".to_owned(), 4096)]);
    let mut out = Text::default();
    let images = HashMap::from([("sha256:b".to_owned(), "busybox:1".to_owned())]);
    write(&mut out, &subjects(&seen, &disks, &images));
    let text = out.into_string();
    let container = "container=\"main\"";
    let rest = "id=\"/podu1/c1\",image=\"busybox:1\",name=\"c1\",namespace=\"default\",pod=\"web\"";
    for line in [
        format!(
            "container_cpu_usage_seconds_total{{{container},cpu=\"total\",{rest}}} 1.5 \
             1767323045678\n"
        ),
        format!("container_fs_usage_bytes{{{container},device=\"node\",{rest}}} 4096 17"),
        format!("container_memory_working_set_bytes{{{container},{rest}}} 2e+06 1767323045678\n"),
        format!("container_spec_memory_limit_bytes{{{container},{rest}}} 0\n"),
        "container_memory_usage_bytes{container=\"\",id=\"/podu1\",image=\"\",name=\"s1\","
            .to_owned(),
        "container_memory_usage_bytes{container=\"\",id=\"/\",image=\"\",name=\"\",".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
}

#[test]
fn metrics_stand_in_the_order_of_their_names() {
    assert!(METRICS.is_sorted_by_key(|metric| metric.name));
}
