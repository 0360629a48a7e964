//! Which webhooks a request concerns: by rules, by the labels of its namespace and of its object,
//! and by conditions.

use super::conditions::Matched;
use super::form::{Form, Shown};
use super::hook::Hook;
use super::rules::Place;
use crate::admission::{Attributes, Operation};
use crate::authorize::Authorizer;
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::selector::LabelSelector;
use coracle_api::status::{Status, Subject};
use std::sync::Arc;

/// In which form a webhook is asked about a request; `None` when it is not. `object` is the new
/// state. Rules come first, as they cost least; what is wrong with a namespace counts when all else
/// fits.
pub fn form(
    view: &dyn View,
    hook: &Hook,
    asked: &Attributes<'_>,
    object: Option<&Object>,
) -> Result<Option<Form>, Status> {
    let Some(form) = by_rules(hook, asked) else {
        return Ok(None);
    };
    let in_namespace = is_in_namespace(view, &hook.namespaces, asked, object);
    if matches!(in_namespace, Ok(false)) {
        return Ok(None);
    }
    let selector = hook.objects.as_ref().map_err(Status::internal);
    let own = Form::asked(asked);
    let both = [object, asked.old].map(|object| own.labelled(object));
    if selector
        .as_ref()
        .is_ok_and(|selector| !has_labels(selector, both))
    {
        return Ok(None);
    }
    in_namespace?;
    selector?;
    Ok(Some(form))
}

/// Whether the conditions of a webhook let it be asked.
pub fn meets_conditions(
    authorizer: &Arc<Authorizer>,
    hook: &Hook,
    asked: &Attributes<'_>,
    shown: &Shown,
) -> Result<bool, Status> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    match hook.conditions.matched(authorizer, asked, shown) {
        Matched::Yes => Ok(true),
        Matched::No => Ok(false),
        Matched::Unknown(_) if hook.ignores_failures => Ok(false),
        Matched::Unknown(why) => {
            let name = &hook.name;
            tracing::warn!(webhook = name, why, "match conditions cannot be evaluated");
            let subject = Subject {
                group: asked.resource.group,
                resource: asked.resource.plural,
                name: asked.name,
            };
            Err(Status::forbidden(subject, &why))
        }
    }
}

/// The first rule that means the request as it was made, else the first that means it in another
/// version.
fn by_rules(hook: &Hook, asked: &Attributes<'_>) -> Option<Form> {
    let place = |form: &Form| Place {
        group: form.resource.group,
        version: form.resource.version,
        resource: form.resource.plural,
        subresource: asked.subresource,
        operation: asked.operation,
        namespace: asked.settled_namespace(),
    };
    let own = Form::asked(asked);
    if hook.rules.iter().any(|rule| rule.matches(&place(&own))) {
        return Some(own);
    }
    if !hook.is_equivalent {
        return None;
    }
    let others = || Form::equivalents(asked);
    let mut rules = hook.rules.iter();
    rules.find_map(|rule| others().find(|form| rule.matches(&place(form))))
}

pub fn is_in_namespace(
    view: &dyn View,
    selector: &Result<LabelSelector, String>,
    asked: &Attributes<'_>,
    object: Option<&Object>,
) -> Result<bool, Status> {
    let (namespace, is_namespace) = (
        asked.settled_namespace(),
        asked.resource.plural == "namespaces",
    );
    if namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = selector.as_ref().map_err(Status::internal)?;
    if selector.is_empty() {
        return Ok(true);
    }
    // Its own labels are about to be other ones.
    let is_written = matches!(asked.operation, Operation::Create | Operation::Update);
    if is_namespace && asked.subresource.is_empty() && is_written {
        return Ok(object.is_some_and(|object| selector.matches_object(object)));
    }
    match view.get("", "namespaces", "", namespace) {
        Some(found) => Ok(selector.matches_object(&found)),
        None => Err(Status::not_found(Subject {
            group: "",
            resource: "namespaces",
            name: namespace,
        })),
    }
}

/// The new object or the old one. What has no metadata has no labels, and is not selected.
pub fn has_labels(selector: &LabelSelector, objects: [Option<&Object>; 2]) -> bool {
    let fits =
        |object: &Object| object.get(&["metadata"]).is_some() && selector.matches_object(object);
    selector.is_empty() || objects.into_iter().flatten().any(fits)
}
