//! Which subresources of a node allow a path of its kubelet's port (`KubeletFineGrainedAuthz`):
//! who may read a node's metrics need not be let at all of the node. One table for the port itself
//! and for `nodes/NAME/proxy/PATH`. Pure.

/// Of paths and what is below them.
const ENDPOINTS: &[(&str, &[&str])] = &[
    ("/pods", &["pods", PROXY]),
    ("/runningpods", &["pods", PROXY]),
    ("/healthz", &["healthz", PROXY]),
    ("/configz", &["configz", PROXY]),
    ("/stats", &["stats"]),
    ("/metrics", &["metrics"]),
    ("/logs", &["log"]),
    ("/checkpoint", &["checkpoint"]),
    ("/statusz", &["statusz"]),
    ("/flagz", &["configz"]),
];

/// What allows every path that has nothing of its own.
pub const PROXY: &str = "proxy";

/// Each of them allows the path by itself; the finest comes first.
pub fn subresources(path: &str) -> &'static [&'static str] {
    let mut all = ENDPOINTS.iter();
    let found = all.find(|(top, _)| is_within(path, top));
    found.map_or(&[PROXY], |(_, subresources)| subresources)
}

/// Whether a path is another one or below it.
pub fn is_within(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_subresources_of_what_it_is_below() {
        for (path, expected) in [
            ("/metrics", &["metrics"][..]),
            ("/metrics/cadvisor", &["metrics"]),
            ("/metricsx", &["proxy"]),
            ("/pods", &["pods", "proxy"]),
            ("/runningpods/", &["pods", "proxy"]),
            ("/logs/kern.log", &["log"]),
            ("/flagz", &["configz"]),
            ("/statusz", &["statusz"]),
            ("//metrics", &["proxy"]),
            ("/", &["proxy"]),
            ("", &["proxy"]),
        ] {
            assert_eq!(subresources(path), expected, "{path}");
        }
    }
}
