//! What a node asks of its kernel.

use super::existing;
use super::finding::Finding;
use coracle_agent::abilities::{self, Ability};
use std::path::Path;

const KERNEL: &str = "kernel";
const GROUPS: &str = "cgroups";

pub fn check(data_dir: &Path) -> Vec<Finding> {
    if !nix::unistd::geteuid().is_root() {
        let found = "not tried: only root can run containers";
        return vec![Finding::fail(
            KERNEL,
            found,
            "Run as root: sudo coracle doctor",
        )];
    }
    let mut findings = match tempfile::tempdir_in(existing(data_dir)) {
        Ok(scratch) => judge(&abilities::try_all(scratch.path())),
        // That it cannot be written to was told of already.
        Err(error) => vec![Finding::warn(KERNEL, format!("not tried: {error}"), "")],
    };
    findings.push(groups());
    findings
}

fn judge(tried: &[abilities::Tried]) -> Vec<Finding> {
    let missing: Vec<Finding> = tried
        .iter()
        .filter_map(|(ability, result)| result.as_ref().err().map(|why| lack(*ability, why)))
        .collect();
    if missing.is_empty() {
        return vec![Finding::ok(
            KERNEL,
            format!("{} abilities tried, all there", tried.len()),
        )];
    }
    missing
}

fn lack(ability: Ability, why: &str) -> Finding {
    let fail = |what, remedy: &str| Finding::fail(KERNEL, format!("{what}: {why}"), remedy);
    let warn = |what, remedy: &str| Finding::warn(KERNEL, format!("{what}: {why}"), remedy);
    match ability {
        Ability::Namespaces => fail(
            "no network and mount namespaces",
            "In a container: give it CAP_SYS_ADMIN. Else the kernel needs CONFIG_NET_NS",
        ),
        Ability::Overlay => fail(
            "no overlay file system on the data directory",
            "`modprobe overlay`, or put --data-dir on ext4, xfs or btrfs",
        ),
        Ability::UserNamespaces => warn(
            "no user namespaces",
            "Only pods with `hostUsers: false` need them: `sysctl user.max_user_namespaces=15000`",
        ),
        Ability::PacketFilter => fail(
            "no nf_tables",
            "`modprobe nf_tables`: Services, host ports and NetworkPolicy need it",
        ),
        Ability::Bridge => fail("no bridge", "`modprobe bridge`: pods are attached to one"),
        Ability::Veth => fail("no veth pairs", "`modprobe veth`: pods are attached by one"),
        Ability::Vxlan => warn(
            "no VXLAN",
            "`modprobe vxlan`: only nodes that are not all on one segment need it",
        ),
        Ability::WireGuard => warn(
            "no WireGuard",
            "Only --encrypt-pod-network needs it, and does without at a tenth of the speed: \
             `modprobe wireguard`",
        ),
    }
}

fn groups() -> Finding {
    let remedy = "On a Raspberry Pi add `cgroup_enable=memory cgroup_memory=1` to the kernel's command \
                  line; elsewhere mount cgroup2 at /sys/fs/cgroup";
    match abilities::missing_controllers() {
        Ok(missing) if missing.is_empty() => Finding::ok(GROUPS, "cpu, memory and pids"),
        Ok(missing) => {
            let found = format!("no controller for {}", missing.join(", "));
            Finding::fail(GROUPS, found, remedy)
        }
        Err(error) => Finding::fail(GROUPS, format!("none: {error}"), remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn what_some_can_do_without_is_no_failure() {
        let all = [
            (Ability::Bridge, Ok(())),
            (Ability::WireGuard, Err("Not supported".to_owned())),
            (Ability::Overlay, Err("ENODEV".to_owned())),
        ];
        let found = judge(&all);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].found, "no WireGuard: Not supported");
        assert_eq!(found[0].verdict, Verdict::Warn);
        assert_eq!(found[1].verdict, Verdict::Fail);
        assert_eq!(judge(&all[..1])[0].verdict, Verdict::Ok);
    }
}
