//! The number behind a priority class, written into the pod; at most one class is the default.

use super::{Attributes, Operation};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::status::Status;

const GROUP: &str = "scheduling.k8s.io";
const PLURAL: &str = "priorityclasses";
/// For pods without a class where no class is the default.
const DEFAULT_PRIORITY: i64 = 0;
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

pub fn admit(view: &dyn View, pod: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !asked.is_main("", "pods") {
        return Ok(());
    }
    match (asked.operation, asked.old) {
        (Operation::Create, _) => establish(view, pod, asked),
        (Operation::Update, Some(old)) => {
            keep(pod, old);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A client that does not know the fields leaves them out: they stay.
fn keep(pod: &mut Object, old: &Object) {
    for field in ["priority", "preemptionPolicy"] {
        let path = ["spec", field];
        let unset = |object: &Object| object.get(&path).is_none_or(serde_json::Value::is_null);
        if unset(pod)
            && !unset(old)
            && let Some(value) = old.get(&path)
        {
            pod.set(&path, value.clone());
        }
    }
}

struct Class {
    name: String,
    value: i64,
    policy: String,
}

impl Class {
    fn of(class: &Object) -> Self {
        Self {
            name: class.name().to_owned(),
            value: class.i64(&["value"]).unwrap_or(DEFAULT_PRIORITY),
            policy: class.str(&["preemptionPolicy"]).to_owned(),
        }
    }
}

fn establish(view: &dyn View, pod: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
    let class = match pod.str(&["spec", "priorityClassName"]) {
        "" => default_class(view).map_or_else(
            || Class {
                name: String::new(),
                value: DEFAULT_PRIORITY,
                policy: DEFAULT_POLICY.to_owned(),
            },
            |class| Class::of(&class),
        ),
        name => match view.get(GROUP, PLURAL, "", name) {
            Some(class) => Class::of(&class),
            None => {
                let why = format!("no PriorityClass with name {name} was found");
                return Err(asked.forbidden(Some(pod), why));
            }
        },
    };
    if let Some(given) = pod.i64(&["spec", "priority"])
        && given != class.value
    {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {} from the given PriorityClass name",
            class.value
        );
        return Err(asked.forbidden(Some(pod), why));
    }
    let given = pod.str(&["spec", "preemptionPolicy"]);
    if !class.policy.is_empty() && !given.is_empty() && given != class.policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {} from the given PriorityClass name",
            class.policy
        );
        return Err(asked.forbidden(Some(pod), why));
    }
    if !class.name.is_empty() {
        pod.set(&["spec", "priorityClassName"], class.name.into());
    }
    pod.set(&["spec", "priority"], class.value.into());
    if !class.policy.is_empty() {
        pod.set(&["spec", "preemptionPolicy"], class.policy.into());
    }
    Ok(())
}

/// Should two have come to be the default in a race, the lower one counts.
fn default_class(view: &dyn View) -> Option<Object> {
    // As it is stored. Every pod asks, and few classes are the default.
    view.having(GROUP, PLURAL, "\"globalDefault\":true")
        .into_iter()
        .filter(|class| class.bool(&["globalDefault"]))
        .min_by_key(|class| class.i64(&["value"]))
}

pub fn validate(view: &dyn View, class: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !asked.is_main(GROUP, PLURAL) || !class.bool(&["globalDefault"]) {
        return Ok(());
    }
    match default_class(view) {
        Some(other) if asked.operation == Operation::Create || other.name() != class.name() => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other.name()
            );
            Err(asked.forbidden(Some(class), why))
        }
        _ => Ok(()),
    }
}
