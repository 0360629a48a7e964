//! Extended resources that device classes stand behind.

use crate::object::Object;
use std::collections::BTreeMap;

/// The extended resource that each class offers its devices as, where it does.
#[derive(Clone, Debug, Default)]
pub struct DeviceClasses {
    /// By name of the class. A class without such a resource is there too.
    classes: BTreeMap<String, Option<String>>,
}

impl DeviceClasses {
    pub fn of<'a>(classes: impl IntoIterator<Item = &'a Object>) -> Self {
        let classes = classes.into_iter();
        let entry = |class: &Object| {
            let resource = class.str(&["spec", "extendedResourceName"]);
            let resource = (!resource.is_empty()).then(|| resource.to_owned());
            (class.name().to_owned(), resource)
        };
        Self {
            classes: classes.map(entry).collect(),
        }
    }

    pub fn extended_resource(&self, class: &str) -> Option<&str> {
        self.classes.get(class)?.as_deref()
    }

    /// Whether some class offers its devices as this resource, by its own name or by the implicit
    /// one.
    pub fn offer(&self, resource: &str) -> bool {
        let implicit = resource.strip_prefix(super::claims::IMPLICIT);
        implicit.is_some_and(|class| self.classes.contains_key(class))
            || self
                .classes
                .values()
                .any(|offered| offered.as_deref() == Some(resource))
    }
}
