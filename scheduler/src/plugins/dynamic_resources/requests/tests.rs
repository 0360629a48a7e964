//! Containers as text in, requests and who has them out.
//!
//! A line is `init|sidecar|main NAME RESOURCE=COUNT...`.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

const GPU: Wanted<'static> = Wanted {
    resource: "example.com/gpu",
    class: "gpus",
};
const NIC: Wanted<'static> = Wanted {
    resource: "example.com/nic",
    class: "nics",
};

fn check(containers: &str, wanted: &[Wanted<'_>], expected: Expect) {
    let (mut init, mut main) = (Vec::new(), Vec::new());
    for line in containers.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut container = json!({"name": words[1]});
        for (name, count) in words[2..].iter().filter_map(|word| word.split_once('=')) {
            container["resources"]["requests"][name] = count.into();
        }
        match words[0] {
            "main" => main.push(container),
            "init" => init.push(container),
            _ => {
                container["restartPolicy"] = "Always".into();
                init.push(container);
            }
        }
    }
    let spec = json!({"containers": main, "initContainers": init});
    let spec: PodSpec = serde_json::from_value(spec).unwrap();
    let (requests, mappings) = of(&spec, wanted);
    let requests = requests.iter().map(|one| {
        let exactly = one.exactly.as_ref().unwrap();
        assert_eq!(exactly.allocation_mode.as_deref(), Some("ExactCount"));
        let count = exactly.count.unwrap();
        format!("{} {count} {}", one.name, exactly.device_class_name)
    });
    let mappings = mappings.iter().map(|one| {
        let resource = one.resource_name.rsplit('/').next().unwrap();
        format!("{}: {resource} {}", one.container_name, one.request_name)
    });
    let lines: Vec<String> = requests.chain(mappings).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn containers_that_stay_have_requests_of_their_own() {
    check(
        "main a cpu=1 example.com/gpu=2 example.com/nic=1
         main b
         main c example.com/gpu=1 example.com/other=0
         main d example.com/gpu=0",
        &[GPU, NIC],
        expect![[r#"
            container-0-request-1 2 gpus
            container-0-request-2 1 nics
            container-2-request-0 1 gpus
            a: gpu container-0-request-1
            c: gpu container-2-request-0
            a: nic container-0-request-2"#]],
    );
}

#[test]
fn containers_that_end_use_what_others_have_later() {
    check(
        "init a example.com/gpu=1
         init b example.com/gpu=3
         init c example.com/gpu=2
         sidecar d example.com/gpu=1
         init e example.com/gpu=2
         main f example.com/gpu=1",
        &[GPU],
        expect![[r#"
            container-1-request-0 1 gpus
            container-3-request-0 1 gpus
            container-5-request-0 1 gpus
            d: gpu container-3-request-0
            f: gpu container-5-request-0
            a: gpu container-3-request-0
            b: gpu container-3-request-0
            b: gpu container-5-request-0
            b: gpu container-1-request-0
            c: gpu container-3-request-0
            c: gpu container-5-request-0
            e: gpu container-5-request-0
            e: gpu container-1-request-0"#]],
    );
}

#[test]
fn the_hungriest_that_ends_asks_for_all_of_them() {
    check(
        "init a example.com/gpu=2
         init b example.com/gpu=4
         init c example.com/gpu=4
         main d",
        &[GPU],
        expect![[r#"
            container-1-request-0 4 gpus
            a: gpu container-1-request-0
            b: gpu container-1-request-0
            c: gpu container-1-request-0"#]],
    );
}

#[test]
fn nothing_is_asked_for_where_nothing_is_wanted() {
    check("main a example.com/gpu=1", &[NIC], expect![[""]]);
    check("main a example.com/gpu=1", &[], expect![[""]]);
}
