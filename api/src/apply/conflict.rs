//! What an apply would take from other managers, in upstream's words.

use super::element::Element;
use super::managed::{Entry, Operation};
use super::set::{Set, path_text};
use crate::status::Status;
use serde_json::{Value, json};

/// One field that another manager manages.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// By which managers are sorted and told apart.
    identity: String,
    /// The manager as messages name it.
    manager: String,
    path: Vec<Element<'static>>,
}

#[derive(Clone, Debug, Default)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the members of a set that an entry's manager has.
    pub fn add(&mut self, entry: &Entry<'_>, set: &Set<'_>) {
        let (identity, manager) = (entry.identity(), shown(entry));
        set.each_path(&mut |path| {
            self.0.push(Conflict {
                identity: identity.clone(),
                manager: manager.clone(),
                path: path.iter().map(|step| step.clone().into_owned()).collect(),
            });
        });
    }

    /// Those that are not in `allowed`.
    #[must_use]
    pub fn without(mut self, allowed: &Set<'_>) -> Self {
        self.0.retain(|conflict| !allowed.has(&conflict.path));
        self
    }

    fn message(&self) -> String {
        if let [one] = self.0.as_slice() {
            return format!(
                "Apply failed with 1 conflict: conflict with {}: {}",
                one.manager,
                path_text(&one.path)
            );
        }
        let mut lines = Vec::new();
        let mut last = "";
        for conflict in &self.0 {
            if conflict.identity != last {
                lines.push(format!("conflicts with {}:", conflict.manager));
                last = &conflict.identity;
            }
            lines.push(format!("- {}", path_text(&conflict.path)));
        }
        let count = self.0.len();
        format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
    }

    /// The 409.
    pub fn into_status(mut self) -> Status {
        self.0.sort_by(|a, b| a.identity.cmp(&b.identity));
        let causes: Value = self
            .0
            .iter()
            .map(|conflict| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {}", conflict.manager),
                    "field": path_text(&conflict.path),
                })
            })
            .collect();
        Status {
            code: 409,
            reason: "Conflict".into(),
            message: self.message(),
            details: json!({ "causes": causes }),
        }
    }
}

fn shown(entry: &Entry<'_>) -> String {
    let mut text = format!("{:?}", entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", entry.subresource));
    }
    if entry.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}
