//! Which requests a policy or a binding concerns: by rules, and by the labels of the namespace and of
//! the object.

use super::super::webhook::form::Form;
use super::super::webhook::rules::{Place, Rule};
use super::super::webhook::select::{has_labels, is_in_namespace};
use crate::admission::Attributes;
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::selector::LabelSelector;
use serde_json::Value;

#[derive(Debug)]
pub struct Constraints {
    rules: Vec<Named>,
    excluded: Vec<Named>,
    /// Rules mean the same objects in other versions and groups too.
    is_equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
}

/// A rule for objects of some names, or of all where there are none.
#[derive(Debug)]
struct Named {
    rule: Rule,
    names: Vec<String>,
}

impl Named {
    fn read(rule: &Value) -> Self {
        let names = json::list(rule, "resourceNames").iter();
        Self {
            rule: Rule::read(rule),
            names: names.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    fn matches(&self, form: &Form, asked: &Attributes<'_>) -> bool {
        let place = Place {
            group: form.resource.group,
            version: form.resource.version,
            resource: form.resource.plural,
            subresource: asked.subresource,
            operation: asked.operation,
            namespace: asked.settled_namespace(),
        };
        let is_named = self.names.is_empty() || self.names.iter().any(|name| name == asked.name);
        is_named && self.rule.matches(&place)
    }
}

impl Constraints {
    pub fn read(resources: &Value) -> Self {
        let selector = |name: &str| match json::some(resources, name) {
            Some(selector) => LabelSelector::from_json(selector).map_err(|error| error.to_string()),
            None => Ok(LabelSelector::default()),
        };
        let rules = |name: &str| {
            json::list(resources, name)
                .iter()
                .map(Named::read)
                .collect()
        };
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_equivalent: json::text(resources, "matchPolicy") == "Equivalent",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// In which form the request is concerned; `None` when it is not. What is wrong with a namespace
    /// or a selector counts when all else fits.
    pub fn matched(
        &self,
        view: &dyn View,
        asked: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<Option<Form>, String> {
        if self.by_rules(&self.excluded, asked).is_some() {
            return Ok(None);
        }
        let form = match self.rules.is_empty() {
            true => Some(Form::asked(asked)),
            false => self.by_rules(&self.rules, asked),
        };
        let Some(form) = form else {
            return Ok(None);
        };
        let in_namespace = is_in_namespace(view, &self.namespaces, asked, object);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let own = Form::asked(asked);
        let both = [object, asked.old].map(|object| own.labelled(object));
        if let Ok(selector) = &self.objects
            && !has_labels(selector, both)
        {
            return Ok(None);
        }
        in_namespace.map_err(|status| status.message)?;
        self.objects.as_ref().map_err(Clone::clone)?;
        Ok(Some(form))
    }

    /// The request as it was made, if a rule means that; else the first form that a rule means.
    fn by_rules(&self, rules: &[Named], asked: &Attributes<'_>) -> Option<Form> {
        let own = Form::asked(asked);
        if rules.iter().any(|rule| rule.matches(&own, asked)) {
            return Some(own);
        }
        if !self.is_equivalent {
            return None;
        }
        let others = || Form::equivalents(asked);
        let mut rules = rules.iter();
        rules.find_map(|rule| others().find(|form| rule.matches(form, asked)))
    }
}
