//! Versions: their schemas, subresources, printed columns and selectable fields.

use super::costs::Costs;
use super::{defaults, field_path, schema, structural, validate};
use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::{custom, json, names};
use serde_json::Value;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const SELECTABLE_MAX: usize = 8;
const WARNING_CHARACTERS_MAX: usize = 256;
/// What of a root's schema may be said beside the types, where a status is a subresource.
const ROOT_FIELDS: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
    ),
    ("XValidations", "x-kubernetes-validations"),
];

/// What all versions have the same: null where they differ, or where there is none.
#[derive(Debug)]
pub struct Shared<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
    /// Of all their schemas.
    budget: Budget,
    /// The versions before an update.
    before: &'a [Value],
    /// The name of the first version, under which what they share is looked for among those.
    first: &'a str,
}

impl<'a> Shared<'a> {
    pub fn of(versions: &'a [Value], before: &'a [Value]) -> Self {
        let same = |field: &str| {
            let first = json::get(versions.first()?, field);
            // Not as Go compares structs: a property without a type is one.
            let all = versions.iter().all(|one| json::get(one, field) == first);
            all.then_some(first)
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
            budget: Budget::default(),
            before,
            first: versions
                .first()
                .map_or("", |first| json::text(first, "name")),
        }
    }

    /// Whether the version of the name has had the schema already.
    fn is_stored(&self, name: &str, schema: &Value) -> bool {
        let mut named = self
            .before
            .iter()
            .filter(|one| json::text(one, "name") == name);
        named
            .next()
            .is_some_and(|one| json::get(one, "schema") == schema)
    }

    /// What is wrong with a schema of the version of the name.
    fn root_schema(&self, schema: &Value, name: &str, has_status: bool, path: &Path) -> ErrorList {
        let costs = Costs::new(self.is_stored(name, schema));
        root_schema(schema, has_status, &self.budget, &costs, path)
    }

    /// The versions without what they have the same, as upstream's internal form has them.
    pub fn rest(&self, versions: &[Value]) -> Vec<Value> {
        let mut rest = versions.to_vec();
        for (field, shared) in [
            ("schema", self.schema),
            ("subresources", self.subresources),
            ("additionalPrinterColumns", self.columns),
            ("selectableFields", self.selectable),
        ] {
            for version in rest.iter_mut().filter_map(Value::as_object_mut) {
                if shared.is_some() {
                    version.remove(field);
                }
            }
        }
        rest
    }

    fn has_status(&self) -> bool {
        self.subresources
            .is_some_and(|one| json::has(one, "status"))
    }
}

fn open_api(version: &Value) -> Option<&Value> {
    json::some(json::get(version, "schema"), "openAPIV3Schema")
}

pub fn have_defaults(versions: &[Value]) -> bool {
    let mut schemas = versions.iter().filter_map(open_api);
    schemas.any(|schema| schema::any(schema, &|one| json::has(one, "default")))
}

pub fn schemas_are_there(versions: &[Value], path: &Path) -> ErrorList {
    let missing = versions
        .iter()
        .enumerate()
        .filter(|(_, one)| open_api(one).is_none());
    let errors = missing.map(|(index, _)| {
        let path = path.child("versions").index(index);
        FieldError::required(&path.child("schema").child("openAPIV3Schema"), "")
    });
    errors.collect()
}

/// What is wrong with a version, as far as it is its own.
pub fn own(version: &Value, shared: &Shared<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = json::text(version, "name");
    let details = names::dns_1035_label(name);
    validate::join_invalid(&mut errors, &path.child("name"), name, &details);
    errors.extend(deprecation(version, &path.child("deprecationWarning")));
    let subresources = json::get(version, "subresources");
    if shared.schema.is_none() {
        let has_status = match shared.subresources {
            Some(_) => shared.has_status(),
            None => json::has(subresources, "status"),
        };
        let schema = json::get(version, "schema");
        let path = path.child("schema");
        errors.extend(shared.root_schema(schema, name, has_status, &path));
    }
    if shared.subresources.is_none() {
        errors.extend(scale(subresources, &path.child("subresources")));
    }
    if shared.columns.is_none() {
        errors.extend(columns(
            json::get(version, "additionalPrinterColumns"),
            path,
        ));
    }
    if shared.selectable.is_none() {
        let fields = json::get(version, "selectableFields");
        let schema = open_api(version)
            .ok_or("may only be set when `version.schema.openAPIV3Schema` is not included");
        errors.extend(selectable(fields, schema, path));
    }
    errors
}

/// What is wrong with what all versions have the same.
pub fn shared(shared: &Shared<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(schema) = shared.schema {
        let path = path.child("validation");
        let has_status = shared.has_status();
        errors.extend(shared.root_schema(schema, shared.first, has_status, &path));
    }
    if let Some(subresources) = shared.subresources {
        errors.extend(scale(subresources, &path.child("subresources")));
    }
    if let Some(list) = shared.columns {
        errors.extend(columns(list, path));
    }
    if let Some(fields) = shared.selectable {
        let schema = shared.schema.map(|one| json::get(one, "openAPIV3Schema"));
        let schema = schema.filter(|schema| schema.is_object());
        let schema = schema.ok_or("may only be set when validations.schema is included");
        errors.extend(selectable(fields, schema, path));
    }
    errors
}

fn deprecation(version: &Value, path: &Path) -> ErrorList {
    let Some(warning) = json::some(version, "deprecationWarning").and_then(Value::as_str) else {
        return ErrorList::new();
    };
    let mut errors = ErrorList::new();
    let mut wrong = |detail: String| errors.push(FieldError::invalid(path, warning, detail));
    if !json::flag(version, "deprecated") {
        wrong("can only be set for deprecated versions".to_owned());
        return errors;
    }
    if warning.len() > WARNING_CHARACTERS_MAX {
        wrong("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at \
             index {index}"
        ));
    }
    errors
}

fn root_schema(
    validation: &Value,
    has_status: bool,
    budget: &Budget,
    costs: &Costs,
    path: &Path,
) -> ErrorList {
    let Some(root) = json::some(validation, "openAPIV3Schema") else {
        return ErrorList::new();
    };
    let path = path.child("openAPIV3Schema");
    let mut errors = ErrorList::new();
    if has_status {
        errors.extend(root_with_status(root, &path));
    }
    if json::flag(root, "nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    let unsupported = structural::unsupported(root);
    let mut is_structural = unsupported.is_none();
    if is_structural {
        let mut found = structural::validate(root, budget, &path);
        if found.is_empty() {
            found = defaults::validate(root, budget, &path);
        }
        is_structural = found.is_empty();
        errors.extend(found);
    }
    errors.extend(schema::validate(root, is_structural, budget, costs, &path));
    if let Some(detail) = unsupported.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(&path, "", detail));
    }
    errors
}

fn root_with_status(root: &Value, path: &Path) -> ErrorList {
    let kind = json::text(root, "type");
    if !kind.is_empty() && kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        return vec![FieldError::invalid(&path.child("type"), kind, detail)];
    }
    let is_allowed = |field: &str| ROOT_FIELDS.iter().any(|(_, allowed)| *allowed == field);
    let fields = root.as_object().into_iter().flatten();
    let mut others = fields.filter(|(name, value)| !json::is_empty(value) && !is_allowed(name));
    if others.next().is_none() {
        return ErrorList::new();
    }
    let names = ROOT_FIELDS.map(|(name, _)| name).join(" ");
    let detail = format!(
        "only [{names}] fields are allowed at the root of the schema if the status subresource is \
         enabled"
    );
    vec![FieldError::invalid(path, root.clone(), detail).as_go(schema::TYPE)]
}

fn scale(subresources: &Value, path: &Path) -> ErrorList {
    let Some(scale) = json::some(subresources, "scale") else {
        return ErrorList::new();
    };
    let mut errors = ErrorList::new();
    let mut one = |field: &str, roots: &[&str], detail: &str| {
        let (text, path) = (json::text(scale, field), path.child("scale").child(field));
        if !text.starts_with('.') {
            errors.extend(simple_path(text, &path));
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            errors.push(FieldError::invalid(&path, text, detail));
        } else if custom::steps(text) > custom::SCALE_STEPS_MAX {
            let (steps, max) = (custom::steps(text), custom::SCALE_STEPS_MAX);
            errors.push(FieldError::too_many(&path, steps, max));
        }
    };
    one(
        "specReplicasPath",
        &[".spec."],
        "should be a json path under .spec",
    );
    let of_status = "should be a json path under .status";
    one("statusReplicasPath", &[".status."], of_status);
    if !json::text(scale, "labelSelectorPath").is_empty() {
        let either = "should be a json path under either .spec or .status";
        one("labelSelectorPath", &[".spec.", ".status."], either);
    }
    errors
}

fn simple_path(text: &str, path: &Path) -> ErrorList {
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if text.starts_with('.') {
        return ErrorList::new();
    }
    let detail = "must be a simple json path starting with .";
    vec![FieldError::invalid(path, text, detail)]
}

fn columns(list: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, column) in list.as_array().into_iter().flatten().enumerate() {
        let path = path.child("additionalPrinterColumns").index(index);
        let text = |field: &str| json::text(column, field);
        if text("name").is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        let of_type = path.child("type");
        match text("type") {
            "" => errors.push(FieldError::required(&of_type, detail)),
            known if COLUMN_TYPES.contains(&known) => {}
            other => errors.push(FieldError::invalid(&of_type, other, detail)),
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(&path.child("format"), format, detail));
        }
        errors.extend(simple_path(text("jsonPath"), &path.child("JSONPath")));
    }
    errors
}

/// `schema` is a schema, or why there ought to be one.
fn selectable(fields: &Value, schema: Result<&Value, &str>, path: &Path) -> ErrorList {
    let Some(fields) = fields.as_array().filter(|fields| !fields.is_empty()) else {
        return ErrorList::new();
    };
    let path = path.child("selectableFields");
    let schema = match schema {
        Ok(schema) => schema,
        Err(detail) => return vec![FieldError::invalid(&path, "", detail)],
    };
    let mut errors = ErrorList::new();
    let mut seen = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let text = json::text(field, "jsonPath");
        let path = path.index(index).child("jsonPath");
        if text.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let (steps, found) = match field_path::resolve(text, schema, false) {
            Ok(found) => found,
            Err(error) => {
                let detail = format!("is an invalid path: {error}");
                errors.push(FieldError::invalid(&path, text, detail));
                continue;
            }
        };
        if steps.first().is_some_and(|step| step == "metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, text, detail));
        }
        if !matches!(json::text(found, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, text, detail));
        }
        if seen.contains(&steps) {
            errors.push(FieldError::duplicate(&path, text));
        } else {
            seen.push(steps);
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(&path, seen.len(), SELECTABLE_MAX));
    }
    errors
}
