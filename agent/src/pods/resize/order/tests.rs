//! Text in, text out: the order of changes.

use super::{Part, Resource, Step, only, steps};
use crate::runtime::Resources;
use expect_test::{Expect, expect};

fn resources(memory: i64, quota: i64, shares: u64) -> Resources {
    Resources {
        memory_limit_bytes: memory,
        cpu_quota_us: quota,
        cpu_shares: shares,
        ..Resources::default()
    }
}

fn part(number: usize, resource: Resource, is_growing: bool, to: &Resources) -> Part {
    Part {
        number,
        resource,
        is_growing,
        resources: only(resource, to),
    }
}

fn said(resources: &Resources) -> String {
    let Resources {
        memory_limit_bytes: memory,
        cpu_quota_us: quota,
        cpu_shares: shares,
        ..
    } = resources;
    let all = [
        ("memory", *memory),
        ("quota", *quota),
        ("shares", shares.cast_signed()),
    ];
    let given = all.iter().filter(|(_, value)| *value != 0);
    given
        .map(|(name, value)| format!(" {name}={value}"))
        .collect()
}

#[track_caller]
fn check(has: &Resources, wanted: &Resources, parts: &[Part], expected: Expect) {
    let lines: Vec<_> = steps(has, wanted, parts)
        .iter()
        .map(|step| match step {
            Step::Pod(resources) => format!("pod{}", said(resources)),
            Step::Container(number, resources) => format!("{number}{}", said(resources)),
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_pod_grows_before_its_containers_and_shrinks_after_them() {
    let (small, large) = (resources(100, 10, 1), resources(200, 20, 2));
    let one = |to: &Resources, grows| {
        [Resource::Memory, Resource::Cpu].map(|resource| part(0, resource, grows, to))
    };
    check(
        &small,
        &large,
        &one(&large, true),
        expect![[r#"
        pod memory=200
        0 memory=200
        pod quota=20
        pod shares=2
        0 quota=20 shares=2"#]],
    );
    check(
        &large,
        &small,
        &one(&small, false),
        expect![[r#"
        0 memory=100
        pod memory=100
        0 quota=10 shares=1
        pod shares=1
        pod quota=10"#]],
    );
}

#[test]
fn who_shrinks_makes_room_for_who_grows() {
    let pod = resources(100, 0, 0);
    let parts = [
        part(0, Resource::Memory, true, &resources(70, 0, 0)),
        part(1, Resource::Memory, false, &resources(30, 0, 0)),
    ];
    check(
        &pod,
        &pod,
        &parts,
        expect![[r#"
        1 memory=30
        0 memory=70"#]],
    );
}

#[test]
fn a_limit_that_is_new_comes_last_and_one_that_is_gone_stays() {
    let parts = [part(0, Resource::Cpu, true, &resources(0, 20, 5))];
    check(
        &resources(0, 0, 5),
        &resources(0, 20, 5),
        &parts,
        expect![[r#"
        0 quota=20 shares=5
        pod quota=20"#]],
    );
    check(
        &resources(100, 20, 5),
        &resources(0, 0, 5),
        &[],
        expect![""],
    );
}
