//! Which networks a Node's pods have.

use k8s_openapi::api::core::v1::Node;

/// As they were written; the one field that was there before there could be two counts where the
/// list has none.
pub fn pod_cidrs(node: &Node) -> impl Iterator<Item = &str> {
    let spec = node.spec.as_ref();
    let all = spec.and_then(|spec| spec.pod_cidrs.as_deref());
    let one = spec.and_then(|spec| spec.pod_cidr.as_ref());
    let all = match all.unwrap_or_default() {
        [] => one.map(std::slice::from_ref).unwrap_or_default(),
        all => all,
    };
    let all = all.iter().map(String::as_str);
    all.filter(|cidr| !cidr.is_empty())
}

#[cfg(test)]
mod tests {
    use super::pod_cidrs;
    use serde_json::{Value, json};

    fn of(spec: Value) -> String {
        let node = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
        pod_cidrs(&node).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn the_list_counts_and_else_the_one() {
        let both = ["10.42.1.0/24", "fd42::/64"];
        assert_eq!(of(json!({})), "");
        assert_eq!(of(json!({ "podCIDR": "", "podCIDRs": [""] })), "");
        assert_eq!(of(json!({ "podCIDR": both[0] })), both[0]);
        assert_eq!(of(json!({ "podCIDR": both[0], "podCIDRs": [] })), both[0]);
        assert_eq!(
            of(json!({ "podCIDR": both[0], "podCIDRs": both })),
            both.join(",")
        );
    }
}
