//! What `spec.podFailurePolicy` says of a failed pod: the first rule that matches decides. Pure.

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Counts towards the back-off limits.
    Count,
    Ignore,
    FailIndex,
    /// With the text of the condition.
    FailJob(String),
}

impl Verdict {
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignore
    }
}

pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let rules = policy.map(|policy| policy.rules.as_slice());
    let mut rules = rules.unwrap_or_default().iter().enumerate();
    let verdict = rules.find_map(|(index, rule)| apply(rule, index, pod));
    verdict.unwrap_or(Verdict::Count)
}

fn apply(rule: &PodFailurePolicyRule, index: usize, pod: &Pod) -> Option<Verdict> {
    let status = pod.status.as_ref()?;
    let cause = match (&rule.on_exit_codes, &rule.on_pod_conditions) {
        (Some(codes), _) => {
            let (container, ended) = failed_container(status, codes)?;
            let code = ended.exit_code;
            Cause::Container(container, code)
        }
        (None, Some(patterns)) => {
            let mut conditions = status.conditions.iter().flatten();
            let found = conditions.find(|condition| {
                patterns.iter().any(|pattern| {
                    let status = pattern.status.as_deref().unwrap_or("True");
                    pattern.type_ == condition.type_ && status == condition.status
                })
            })?;
            Cause::Condition(&found.type_)
        }
        (None, None) => return None,
    };
    match rule.action.as_str() {
        "Ignore" => Some(Verdict::Ignore),
        "FailIndex" => Some(Verdict::FailIndex),
        "Count" => Some(Verdict::Count),
        "FailJob" => Some(Verdict::FailJob(cause.message(pod, index))),
        _ => None, // Of a later release: the next rule may match.
    }
}

enum Cause<'a> {
    Container(&'a str, i32),
    Condition(&'a str),
}

impl Cause<'_> {
    fn message(&self, pod: &Pod, rule: usize) -> String {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match self {
            Self::Container(container, code) => format!(
                "Container {container} for pod {namespace}/{name} failed with exit code {code} \
                 matching FailJob rule at index {rule}"
            ),
            Self::Condition(condition) => format!(
                "Pod {namespace}/{name} has condition {condition} matching FailJob rule at index \
                 {rule}"
            ),
        }
    }
}

/// The first container that ended as the rule says, ordinary ones before those of initialization.
fn failed_container<'a>(
    status: &'a PodStatus,
    rule: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, &'a ContainerStateTerminated)> {
    let ordinary = status.container_statuses.iter().flatten();
    let initial = status.init_container_statuses.iter().flatten();
    let ended = |container: &'a ContainerStatus| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        let wanted = rule.container_name.as_ref();
        let named = wanted.is_none_or(|name| *name == container.name);
        let listed = rule.values.contains(&ended.exit_code);
        let matches = match rule.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        (named && matches && ended.exit_code != 0).then_some((container.name.as_str(), ended))
    };
    ordinary.chain(initial).find_map(ended)
}
