//! How long copies may be believed in clusters of which size. Upstream's figures. Pure.

use k8s_openapi::api::core::v1::Node;

pub(super) const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// Clusters of these sizes, and for how long. Sizes overlap, so that a cluster at a border is not
/// written anew with each node.
struct Size {
    nodes_min: usize,
    nodes_max: usize,
    seconds: u32,
}

const SIZES: [Size; 5] = [
    size(0, 100, 0),
    size(90, 500, 15),
    size(450, 1000, 30),
    size(900, 2000, 60),
    size(1800, usize::MAX, 300),
];

const fn size(nodes_min: usize, nodes_max: usize, seconds: u32) -> Size {
    Size {
        nodes_min,
        nodes_max,
        seconds,
    }
}

/// Which of the sizes the cluster has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step(usize);

impl Step {
    pub(super) fn with(self, nodes: usize) -> Self {
        let Self(mut at) = self;
        while nodes > SIZES[at].nodes_max {
            at += 1;
        }
        while nodes < SIZES[at].nodes_min {
            at -= 1;
        }
        Self(at)
    }

    pub(super) fn seconds(self) -> u32 {
        SIZES[self.0].seconds
    }
}

pub(super) fn says(node: &Node, seconds: u32) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    let said = annotations.and_then(|all| all.get(ANNOTATION));
    said.is_some_and(|said| said.parse() == Ok(i64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_cluster_follows_its_nodes_with_some_delay() {
        let mut step = Step::default();
        let mut seconds = |nodes| {
            step = step.with(nodes);
            step.seconds()
        };
        assert_eq!(seconds(0), 0);
        assert_eq!(seconds(100), 0);
        assert_eq!(seconds(101), 15);
        assert_eq!(seconds(90), 15);
        assert_eq!(seconds(89), 0);
        assert_eq!(seconds(2001), 300);
        assert_eq!(seconds(1800), 300);
        assert_eq!(seconds(1799), 60);
        assert_eq!(seconds(460), 30);
        assert_eq!(seconds(1), 0);
    }

    #[test]
    fn what_is_no_number_says_nothing() {
        let says = |value: Option<&str>| {
            let annotations = value.map(|value| [(ANNOTATION.to_owned(), value.to_owned())].into());
            let mut node = Node::default();
            node.metadata.annotations = annotations;
            super::says(&node, 15)
        };
        assert!(says(Some("15")));
        for other in [None, Some("0"), Some(""), Some("15s")] {
            assert!(!says(other), "{other:?}");
        }
    }
}
