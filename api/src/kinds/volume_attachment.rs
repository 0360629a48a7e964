//! Volume attachments: the wish to have a volume at a node. The wish never changes; its driver
//! reports through `status`.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::persistent_volume;
use crate::kinds::row::{self, Names, column};
use crate::kinds::storage;
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "VolumeAttachment",
            plural: "volumeattachments",
            singular: "volumeattachment",
            schema: "io.k8s.api.storage.v1.VolumeAttachment",
        },
        &VolumeAttachment,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    Column {
        name: "Attacher",
        kind: "string",
        format: "name",
        priority: 0,
        description: "The driver that attaches the volume.",
    },
    column("PV", "string", "The persistent volume."),
    column("Node", "string", "The node."),
    column("Attached", "boolean", "Whether the volume is there."),
    row::AGE,
];

/// What a driver reports is kept small.
const METADATA_BYTES_MAX: usize = 256 * 1024;
const MESSAGE_BYTES_MAX: usize = 1024;

#[derive(Debug)]
struct VolumeAttachment;

impl Rules for VolumeAttachment {
    fn default(&self, object: &mut Object) {
        let inline = object.get_mut(&["spec", "source", "inlineVolumeSpec"]);
        if let Some(inline) = inline.filter(|inline| inline.is_object()) {
            persistent_volume::volume_spec(inline);
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({ "attached": false }));
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("spec");
        let mut errors =
            storage::driver_name(object.str(&["spec", "attacher"]), &path.child("attacher"));
        let source = object.get(&["spec", "source"]).unwrap_or(&Value::Null);
        errors.extend(volume(source, &path.child("source")));
        let node = object.str(&["spec", "nodeName"]);
        let node_path = path.child("nodeName");
        invalid_each(&mut errors, &node_path, node, names::dns_subdomain(node));
        errors.extend(status(object.get(&["status"]).unwrap_or(&Value::Null)));
        if let Some(name) = json::some(source, "persistentVolumeName").and_then(Value::as_str) {
            let path = path.child("source").child("persistentVolumeName");
            invalid_each(&mut errors, &path, name, names::dns_subdomain(name));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = self.validate_create(new);
        let [new, old] = [new, old].map(|o| o.get(&["spec"]).unwrap_or(&Value::Null));
        if !json::same(new, old) {
            let error = FieldError::invalid(&Path::root("spec"), new.clone(), names::IMMUTABLE);
            errors.push(error.as_go("io.k8s.api.storage.v1.VolumeAttachmentSpec"));
        }
        errors
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["spec", "attacher"]).into(),
            object
                .str(&["spec", "source", "persistentVolumeName"])
                .into(),
            object.str(&["spec", "nodeName"]).into(),
            object.bool(&["status", "attached"]).into(),
            print::age_of(object, now),
        ]
    }
}

fn volume(source: &Value, path: &Path) -> ErrorList {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let inline = json::some(source, "inlineVolumeSpec");
    match (inline, json::some(source, "persistentVolumeName")) {
        (None, None) => vec![FieldError::required(path, ONE)],
        (Some(_), Some(_)) => vec![FieldError::forbidden(path, ONE)],
        (None, Some(name)) if name == "" => {
            let detail = "must specify non empty persistentVolumeName";
            let path = path.child("persistentVolumeName");
            vec![FieldError::required(&path, detail)]
        }
        (None, Some(_)) => ErrorList::new(),
        (Some(spec), None) => {
            persistent_volume::validate::inline(spec, &path.child("inlineVolumeSpec"))
        }
    }
}

fn status(status: &Value) -> ErrorList {
    let path = Path::root("status");
    let mut errors = ErrorList::new();
    let metadata = json::entries(status, "attachmentMetadata");
    let bytes: usize = metadata
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > METADATA_BYTES_MAX {
        let path = path.child("attachmentMetadata");
        errors.push(FieldError::too_long(&path, METADATA_BYTES_MAX));
    }
    for field in ["attachError", "detachError"] {
        let Some(error) = json::some(status, field) else {
            continue;
        };
        let path = path.child(field);
        if json::text(error, "message").len() > MESSAGE_BYTES_MAX {
            // The bound that upstream names is another than the one it has.
            let error = FieldError::too_long(&path.child("message"), METADATA_BYTES_MAX);
            errors.push(error);
        }
        if let Some(code) = json::int(error, "errorCode")
            && code < 0
        {
            let detail = "must be between 0 and 2147483647, inclusive";
            let path = path.child("errorCode");
            errors.push(FieldError::invalid(&path, code, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
