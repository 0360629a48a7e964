use super::*;
use serde_json::json;

fn refuse(pod: &Pod, rules: &Rules) -> Option<Verdict> {
    refuse_sysctls(pod, rules).or_else(|| refuse_app_armor(pod, rules))
}

fn refusal(allowed: &[&str], spec: serde_json::Value) -> Option<String> {
    let pod: Pod = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
    let allowed: Vec<String> = allowed.iter().map(|one| (*one).to_owned()).collect();
    let rules = Rules::new(&allowed, (4, 10), false);
    refuse(&pod, &rules).map(|verdict| format!("{}: {}", verdict.reason, verdict.message))
}

fn with(sysctl: &str) -> serde_json::Value {
    json!({
        "containers": [{ "name": "main" }],
        "securityContext": { "sysctls": [{ "name": sysctl, "value": "1" }] },
    })
}

#[test]
fn only_sysctls_that_are_safe_or_allowed_are_set() {
    assert_eq!(refusal(&[], with("net.ipv4.tcp_syncookies")), None);
    assert_eq!(refusal(&[], with("net/ipv4/tcp_syncookies")), None);
    assert_eq!(
        refusal(&[], with("kernel.msgmax")).unwrap(),
        "SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted"
    );
    assert_eq!(refusal(&["kernel.msg*"], with("kernel.msgmax")), None);
    assert_eq!(refusal(&["kernel/msg*"], with("kernel.msgmax")), None);
    // This kernel has them for all namespaces at once.
    assert!(refusal(&[], with("net.ipv4.tcp_rmem")).is_some());
    let mut host = with("kernel.shm_rmid_forced");
    host["hostIPC"] = json!(true);
    assert_eq!(
        refusal(&[], host).unwrap(),
        "SysctlForbidden: forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc \
         enabled"
    );
    let mut host = with("net.ipv4.tcp_syncookies");
    host["hostNetwork"] = json!(true);
    assert!(
        refusal(&[], host)
            .unwrap()
            .ends_with("not allowed with host net enabled")
    );
}

#[test]
fn patterns_are_of_namespaces() {
    assert_eq!(check_pattern("net.core.*"), Ok(()));
    assert_eq!(check_pattern("fs/mqueue/msg_max"), Ok(()));
    assert_eq!(
        check_pattern("vm.*").unwrap_err(),
        "the sysctls \"vm.\" are not known to be namespaced"
    );
}

#[test]
fn names_with_slashes_are_turned_around() {
    assert_eq!(
        dotted("net/ipv4/conf/eth0.1/forwarding"),
        "net.ipv4.conf.eth0/1.forwarding"
    );
    assert_eq!(
        dotted("net.ipv4.conf.eth0/1.forwarding"),
        "net.ipv4.conf.eth0/1.forwarding"
    );
    assert_eq!(dotted("plain"), "plain");
}

#[test]
fn app_armor_needs_a_host_that_has_it() {
    let profile = |type_: &str| {
        json!({
            "containers": [{ "name": "main" }],
            "securityContext": { "appArmorProfile": { "type": type_ } },
        })
    };
    assert_eq!(
        refusal(&[], profile("RuntimeDefault")).unwrap(),
        "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host"
    );
    assert_eq!(refusal(&[], profile("Unconfined")), None);
}
