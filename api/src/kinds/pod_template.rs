//! Pod templates: a description of pods that other objects may copy.

use crate::field::{ErrorList, Path};
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, pod_spec, scale};
use serde_json::{Value, json};

pub const ROW: Resource = row::namespaced(
    "",
    "v1",
    Names {
        kind: "PodTemplate",
        plural: "podtemplates",
        singular: "podtemplate",
        schema: "io.k8s.api.core.v1.PodTemplate",
    },
    &PodTemplate,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "Containers",
        "string",
        "Names of each container in the template.",
    ),
    column(
        "Images",
        "string",
        "Images referenced by each container in the template.",
    ),
    column("Pod Labels", "string", "The labels of the template."),
];

#[derive(Debug)]
struct PodTemplate;

impl Rules for PodTemplate {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "template", json!({}));
        object
            .get_mut(&["template"])
            .map(pod_spec::defaults::template);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn raises_generation(&self, new: &Object, old: &Object) -> bool {
        let [new, old] = [new, old].map(|o| o.get(&["template"]).unwrap_or(&json::NULL));
        !json::same(new, old)
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        template(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        template(new, old.get(&["template"]))
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        let containers = object.list(&["template", "spec", "containers"]);
        let joined = |field: &str| {
            let texts: Vec<&str> = containers.iter().map(|c| json::text(c, field)).collect();
            Value::from(texts.join(","))
        };
        let labels = object.get(&["template", "metadata", "labels"]);
        let selector = json!({ "matchLabels": labels });
        let labels = scale::selector_text(&selector);
        vec![
            object.name().into(),
            joined("name"),
            joined("image"),
            if labels.is_empty() {
                "<none>".into()
            } else {
                labels.into()
            },
        ]
    }

    fn warnings_on_update(&self, new: &Object, old: &Object) -> Vec<String> {
        if self.raises_generation(new, old) {
            self.warnings(new)
        } else {
            Vec::new()
        }
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let template = object.get(&["template"]).unwrap_or(&Value::Null);
        pod_spec::warnings::of_template(template, &Path::root("template"))
    }
}

fn template(object: &Object, old: Option<&Value>) -> ErrorList {
    let template = object.get(&["template"]).unwrap_or(&Value::Null);
    pod_spec::validate::template(template, old, &Path::root("template"))
}

#[cfg(test)]
mod tests;
