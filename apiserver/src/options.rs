//! The options of a request: its query, checked, in upstream's words.

use crate::query::Query;
use coracle_api::decode::FieldValidation;
use coracle_api::field::{FieldError, Path};
use coracle_api::object::Object;
use coracle_api::resource::Resource;
use coracle_api::selector::{FieldSelector, LabelSelector};
use coracle_api::status::{Status, Subject};
use coracle_store::Revision;
use serde_json::Value;

/// How the resourceVersion of a list is meant (API concepts, "resourceVersion in list").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Newest,
    NotOlderThan(Revision),
    Exact(Revision),
}

/// Which objects of a collection are meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selection {
    pub fn parse(resource: &Resource, query: &Query) -> Result<Self, Status> {
        let bad = |error: coracle_api::selector::SelectorError| Status::bad_request(error.0);
        let labels = LabelSelector::parse(query.text("labelSelector")).map_err(bad)?;
        let fields = FieldSelector::parse(query.text("fieldSelector")).map_err(bad)?;
        fields
            .check_fields(resource.selectable_fields)
            .map_err(bad)?;
        Ok(Self { labels, fields })
    }

    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, resource: &Resource, object: &Object) -> bool {
        let field = |name: &str| match name {
            "metadata.name" => object.name().to_owned(),
            "metadata.namespace" => object.namespace().to_owned(),
            other => resource.rules.field(object, other),
        };
        self.labels.matches_object(object) && self.fields.matches(field)
    }
}

/// The 422 of options that do not fit together, by the kind of options.
fn invalid(kind: &'static str, error: FieldError) -> Status {
    let subject = Subject {
        group: "meta.k8s.io",
        resource: kind,
        name: "",
    };
    Status::invalid(subject, &[error])
}

/// `resourceVersionMatch` where it may not be, or may not be left out.
pub fn forbidden_match(why: &str) -> Status {
    let path = Path::root("resourceVersionMatch");
    invalid("ListOptions", FieldError::forbidden(&path, why))
}

fn revision(text: &str) -> Result<Option<Revision>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| {
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: \
             strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })?;
    Ok(Some(Revision(number)))
}

/// A bool as Go reads one.
pub fn boolean(query: &Query, name: &str) -> Result<Option<bool>, Status> {
    match query.get(name) {
        None => Ok(None),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True" | "") => Ok(Some(true)),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Some(false)),
        Some(other) => Err(Status::bad_request(format!(
            "strconv.ParseBool: parsing {other:?}: invalid syntax"
        ))),
    }
}

pub fn integer(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    match query.get(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        }),
    }
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug)]
pub struct ListOptions {
    pub selection: Selection,
    pub resource_version: Option<Revision>,
    pub resource_version_match: String,
    pub limit: Option<usize>,
    pub continue_token: String,
    pub timeout_seconds: Option<u64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    pub fn parse(resource: &Resource, query: &Query, name: &str) -> Result<Self, Status> {
        let mut selection = Selection::parse(resource, query)?;
        if !name.is_empty() {
            let one = format!("metadata.name={name}");
            let mut fields =
                FieldSelector::parse(&one).map_err(|error| Status::bad_request(error.0))?;
            fields
                .requirements
                .append(&mut selection.fields.requirements);
            selection.fields = fields;
        }
        let seconds = integer(query, "timeoutSeconds")?;
        let limit = integer(query, "limit")?.filter(|limit| *limit > 0);
        Ok(Self {
            selection,
            resource_version: revision(query.text("resourceVersion"))?,
            resource_version_match: query.text("resourceVersionMatch").to_owned(),
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            continue_token: query.text("continue").to_owned(),
            timeout_seconds: seconds.and_then(|seconds| u64::try_from(seconds).ok()),
            allow_bookmarks: boolean(query, "allowWatchBookmarks")?.unwrap_or(false),
            send_initial_events: boolean(query, "sendInitialEvents")?,
        })
    }

    /// Checks the combinations and says what the list shall show.
    pub fn list_match(&self) -> Result<Match, Status> {
        let asked = self.resource_version;
        match self.resource_version_match.as_str() {
            "" => {}
            "Exact" | "NotOlderThan" if !self.continue_token.is_empty() => {
                return Err(forbidden_match(
                    "resourceVersionMatch is forbidden with continue",
                ));
            }
            "Exact" | "NotOlderThan" if asked.is_none() => {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                return Err(forbidden_match(why));
            }
            "Exact" if asked == Some(Revision(0)) => {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                return Err(forbidden_match(why));
            }
            "Exact" | "NotOlderThan" => {}
            other => {
                let path = Path::root("resourceVersionMatch");
                let error = FieldError::not_supported(&path, other, &["Exact", "NotOlderThan", ""]);
                return Err(invalid("ListOptions", error));
            }
        }
        Ok(match (asked, self.resource_version_match.as_str()) {
            (None, _) => Match::Newest,
            (Some(revision), "Exact") => Match::Exact(revision),
            // Kubernetes' older rule: a limit with a revision that is not 0 is exact.
            (Some(revision), "") if self.limit.is_some() && revision.0 > 0 => {
                Match::Exact(revision)
            }
            (Some(revision), _) => Match::NotOlderThan(revision),
        })
    }
}

/// Options of create, update and patch.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// `kind` is the kind of the options, for an answer that says what is wrong with them.
    pub fn parse(query: &Query, kind: &'static str) -> Result<Self, Status> {
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            other => {
                let path = Path::root("fieldValidation");
                let supported = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported(&path, other, &supported);
                return Err(invalid(kind, error));
            }
        };
        let dry_run = dry_run(query.all("dryRun"), kind)?;
        Ok(Self {
            dry_run,
            field_validation,
        })
    }
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, kind: &'static str) -> Result<bool, Status> {
    let mut is_dry = false;
    for value in values.filter(|value| !value.is_empty()) {
        if value != "All" {
            let path = Path::root("dryRun");
            let error = FieldError::not_supported(&path, value, &["All"]);
            return Err(invalid(kind, error));
        }
        is_dry = true;
    }
    Ok(is_dry)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of delete, from the body or else from the query.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub propagation: Option<Propagation>,
}

impl DeleteOptions {
    pub fn from_body(body: &Value) -> Result<Self, Status> {
        let text = |path: &[&str]| {
            let mut value = body;
            for step in path {
                value = value.get(*step)?;
            }
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let runs = body["dryRun"].as_array().map_or(&[][..], Vec::as_slice);
        let orphans = body["orphanDependents"].as_bool();
        Self {
            dry_run: dry_run(runs.iter().filter_map(Value::as_str), "DeleteOptions")?,
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            propagation: None,
        }
        .with_propagation(text(&["propagationPolicy"]).as_deref(), orphans)
    }

    pub fn from_query(query: &Query) -> Result<Self, Status> {
        let orphans = boolean(query, "orphanDependents")?;
        Self {
            dry_run: dry_run(query.all("dryRun"), "DeleteOptions")?,
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            ..Self::default()
        }
        .with_propagation(
            query
                .get("propagationPolicy")
                .filter(|text| !text.is_empty()),
            orphans,
        )
    }

    fn with_propagation(self, policy: Option<&str>, orphans: Option<bool>) -> Result<Self, Status> {
        let path = Path::root("propagationPolicy");
        if policy.is_some() && orphans.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let error = FieldError::invalid(&path, policy.unwrap_or(""), why);
            return Err(invalid("DeleteOptions", error));
        }
        if self.grace_period_seconds.is_some_and(|seconds| seconds < 0) {
            // A negative grace means the least there is, as upstream has it.
            return Self {
                grace_period_seconds: Some(1),
                ..self
            }
            .with_propagation(policy, orphans);
        }
        let propagation = match (policy, orphans) {
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let supported = ["Background", "Foreground", "Orphan", "nil"];
                let error = FieldError::not_supported(&path, other, &supported);
                return Err(invalid("DeleteOptions", error));
            }
        };
        Ok(Self {
            propagation,
            ..self
        })
    }
}
