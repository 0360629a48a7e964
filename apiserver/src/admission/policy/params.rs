//! Objects that a binding gives its policy, as upstream finds them: by name or by labels, in the
//! namespace that the binding names or in that of the request.

use super::Policies;
use super::binding::Binding;
use super::definition::Policy;
use crate::admission::Attributes;
use crate::admission::webhook::form::Form;
use crate::view::View;
use coracle_api::custom::Kinds;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::selector::LabelSelector;
use serde_json::Value;

/// What parameters a policy takes.
#[derive(Debug)]
pub struct ParamKind {
    api_version: String,
    kind: String,
}

/// Which ones a binding gives.
#[derive(Debug)]
pub struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Result<LabelSelector, String>>,
    /// Without any the request is refused, as far as failures are.
    must_be_found: bool,
}

impl ParamKind {
    pub fn read(kind: &Value) -> Self {
        Self {
            api_version: json::text(kind, "apiVersion").to_owned(),
            kind: json::text(kind, "kind").to_owned(),
        }
    }

    /// The error is in upstream's words.
    fn resource(&self, kinds: &Kinds) -> Result<&'static Resource, String> {
        let split = self.api_version.split_once('/');
        let (group, version) = split.unwrap_or(("", &self.api_version));
        kinds.by_kind(group, version, &self.kind).ok_or_else(|| {
            let kind = format!("{group}/{version}, Kind={}", self.kind);
            format!("failed to find resource referenced by paramKind: '{kind}'")
        })
    }
}

impl ParamRef {
    pub fn read(reference: &Value) -> Self {
        let selector = json::some(reference, "selector");
        Self {
            name: json::text(reference, "name").to_owned(),
            namespace: json::text(reference, "namespace").to_owned(),
            selector: selector.map(|selector| {
                LabelSelector::from_json(selector).map_err(|error| error.to_string())
            }),
            must_be_found: json::text(reference, "parameterNotFoundAction") == "Deny",
        }
    }
}

impl Policies {
    /// In which form a policy concerns the request; `None` when it does not.
    pub fn concerned(
        &self,
        policy: &Policy,
        asked: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<Option<Form>, String> {
        let missing = "policy contained no match constraints, a required field";
        let constraints = policy.constraints.as_ref().ok_or(missing)?;
        let form = constraints.matched(self.view.as_ref(), asked, object)?;
        if let (Some(_), Some(kind)) = (form, &policy.params) {
            kind.resource(&self.kinds())?;
        }
        Ok(form)
    }

    /// What a binding has its policy evaluated with; nothing where it does not apply.
    pub async fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        asked: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<Vec<Option<Object>>, String> {
        let view = self.view.as_ref();
        if let Some(constraints) = &binding.constraints
            && constraints.matched(view, asked, object)?.is_none()
        {
            return Ok(Vec::new());
        }
        let (Some(kind), Some(reference)) = (&policy.params, &binding.params) else {
            return Ok(vec![None]);
        };
        let resource = kind.resource(&self.kinds())?;
        let namespace = place(resource, reference, asked.settled_namespace())?;
        let found = collect(view, resource, reference, namespace)?;
        let found = self.converter.turned(resource, found).await;
        let found = found.map_err(|status| status.message)?;
        let shown = found.into_iter().map(|mut object| {
            if resource.is_second_view || resource.rules.custom().is_some() {
                resource.rules.from_stored(&mut object);
            }
            object.set(&["apiVersion"], resource.api_version().into());
            object.set(&["kind"], resource.kind.into());
            Some(object)
        });
        Ok(shown.collect())
    }
}

/// What a policy is evaluated with, as it is stored: once with each, and not at all for none.
fn collect(
    view: &dyn View,
    resource: &'static Resource,
    reference: &ParamRef,
    namespace: &str,
) -> Result<Vec<Object>, String> {
    let (group, plural) = resource.stored_as;
    let found = match (&reference.selector, reference.name.as_str()) {
        (Some(_), name) if !name.is_empty() => {
            return Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned());
        }
        (Some(selector), _) => {
            let selector = selector.as_ref().map_err(Clone::clone)?;
            let within = Some(namespace).filter(|namespace| !namespace.is_empty());
            let mut all = view.list(group, plural, within);
            all.retain(|object| selector.matches_object(object));
            all
        }
        (None, "") => return Err("one of name or selector must be provided".to_owned()),
        (None, name) => {
            let found = view.get(group, plural, namespace, name);
            found.into_iter().collect()
        }
    };
    if found.is_empty() && reference.must_be_found {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(why.to_owned());
    }
    Ok(found)
}

/// The namespace in which parameters are looked for; empty for those that are in none.
fn place<'a>(
    resource: &Resource,
    reference: &'a ParamRef,
    namespace: &'a str,
) -> Result<&'a str, String> {
    if !resource.is_namespaced() {
        return match reference.namespace.as_str() {
            "" => Ok(""),
            _ => Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                    .to_owned(),
            ),
        };
    }
    match (reference.namespace.as_str(), namespace) {
        ("", "") => Err(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .to_owned(),
        ),
        ("", of_request) => Ok(of_request),
        (own, _) => Ok(own),
    }
}
