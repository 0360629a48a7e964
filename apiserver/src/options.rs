//! The options of a request: its query, checked, in upstream's words.

use crate::query::Query;
use crate::registry::glance::Traits;
use bytes::Bytes;
use coracle_api::field::{FieldError, Path};
use coracle_api::resource::Resource;
use coracle_api::selector::{FieldRequirement, FieldSelector, LabelSelector};
use coracle_api::status::{Status, Subject};
use coracle_store::Revision;
use serde_json::Value;

const EXACT: &str = "Exact";
const NOT_OLDER_THAN: &str = "NotOlderThan";
const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

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
    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// True when a field is asked for that is not in metadata.
    pub fn asks_for_fields(&self) -> bool {
        let of_metadata = |name: &str| matches!(name, "metadata.name" | "metadata.namespace");
        let mut fields = self.fields.requirements.iter();
        fields.any(|one| !of_metadata(&one.field))
    }

    pub fn matches(&self, resource: &Resource, object: &Traits) -> bool {
        let label = |key: &str| object.labels.get(key).map(String::as_str);
        self.labels.matches_with(label)
            && self
                .fields
                .requirements
                .iter()
                .all(|one| (object.field(resource, &one.field) == one.value) == one.equal)
    }

    /// [`Self::matches`] on stored bytes, of which as little is read as the answer needs.
    pub fn matches_stored(&self, resource: &Resource, value: &Bytes) -> bool {
        self.is_all()
            || Traits::of(resource, value, self.asks_for_fields())
                .is_some_and(|traits| self.matches(resource, &traits))
    }
}

/// The 422 of options that do not fit together, by the kind of options.
fn invalid(kind: &'static str, errors: &[FieldError]) -> Status {
    let subject = Subject {
        group: "meta.k8s.io",
        resource: kind,
        name: "",
    };
    Status::invalid(subject, errors)
}

/// A revision as lists and gets read one; `None` for none.
pub fn revision(text: &str) -> Result<Option<Revision>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        )
    })?;
    Ok(Some(Revision(number)))
}

/// What upstream's cache answers to a revision that is none: a failure without a reason.
pub fn unreadable_revision(why: String) -> Status {
    Status {
        code: 500,
        reason: "".into(),
        message: why,
        details: Value::Null,
    }
}

/// A bool as upstream reads one: everything but a plain no is a yes.
pub fn boolean(query: &Query, name: &str) -> Option<bool> {
    let text = query.get(name)?;
    Some(!text.eq_ignore_ascii_case("false") && text != "0")
}

pub fn integer(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    match query.get(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit());
            let why = if is_number {
                "value out of range"
            } else {
                "invalid syntax"
            };
            Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        }),
    }
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug)]
pub struct ListOptions {
    pub selection: Selection,
    /// As the client wrote it: each verb has its own word for one that is none.
    pub resource_version: String,
    pub resource_version_match: String,
    pub limit: Option<usize>,
    pub continue_token: String,
    pub timeout_seconds: Option<u64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Decodes and checks; `name` is the one that the path or the selector names.
    pub fn parse(resource: &Resource, query: &Query, name: &str) -> Result<Self, Status> {
        let bad = |error: coracle_api::selector::SelectorError| Status::bad_request(error.0);
        let labels = LabelSelector::parse(query.text("labelSelector")).map_err(bad)?;
        let mut fields = FieldSelector::parse(query.text("fieldSelector")).map_err(bad)?;
        for one in &mut fields.requirements {
            if let Some(name) = resource.rules.field_alias(&one.field) {
                name.clone_into(&mut one.field);
            }
        }
        let seconds = integer(query, "timeoutSeconds")?;
        let limit = integer(query, "limit")?.filter(|limit| *limit > 0);
        let mut options = Self {
            selection: Selection { labels, fields },
            resource_version: query.text("resourceVersion").to_owned(),
            resource_version_match: query.text("resourceVersionMatch").to_owned(),
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            continue_token: query.text("continue").to_owned(),
            timeout_seconds: seconds.and_then(|seconds| u64::try_from(seconds).ok()),
            allow_bookmarks: boolean(query, "allowWatchBookmarks").unwrap_or(false),
            send_initial_events: boolean(query, "sendInitialEvents"),
        };
        let is_watch = query.flag("watch");
        options.set_defaults(is_watch);
        let errors = if is_watch {
            options.watch_errors()
        } else {
            options.list_errors()
        };
        if !errors.is_empty() {
            return Err(invalid("ListOptions", &errors));
        }
        let fields = &options.selection.fields;
        fields
            .check_fields(resource.selectable_fields)
            .map_err(bad)?;
        options.settle_name(name)?;
        Ok(options)
    }

    /// A watch from nowhere in particular begins with what is there.
    fn set_defaults(&mut self, is_watch: bool) {
        let is_plain = self.send_initial_events.is_none() && self.resource_version_match.is_empty();
        if is_watch && is_plain && matches!(self.resource_version.as_str(), "" | "0") {
            self.send_initial_events = Some(true);
            self.resource_version_match = NOT_OLDER_THAN.to_owned();
        }
    }

    fn list_errors(&self) -> Vec<FieldError> {
        let path = Path::root("resourceVersionMatch");
        let mut errors = Vec::new();
        let mut forbid = |why: &str| errors.push(FieldError::forbidden(&path, why));
        let how = self.resource_version_match.as_str();
        if !how.is_empty() {
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid(WITH_CONTINUE);
            }
            if how == EXACT && self.resource_version == "0" {
                forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            if how != EXACT && how != NOT_OLDER_THAN {
                let supported = [EXACT, NOT_OLDER_THAN, ""];
                errors.push(FieldError::not_supported(&path, how, &supported));
            }
        }
        if self.send_initial_events.is_some() {
            let path = Path::root("sendInitialEvents");
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden(&path, why));
        }
        errors
    }

    fn watch_errors(&self) -> Vec<FieldError> {
        let path = Path::root("resourceVersionMatch");
        let mut errors = Vec::new();
        let how = self.resource_version_match.as_str();
        if self.send_initial_events.is_some() && how != NOT_OLDER_THAN {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&path, why));
        }
        if how.is_empty() {
            return errors;
        }
        if self.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
            errors.push(FieldError::forbidden(&path, why));
        }
        if how != NOT_OLDER_THAN {
            errors.push(FieldError::not_supported(&path, how, &[NOT_OLDER_THAN]));
        }
        if !self.continue_token.is_empty() {
            errors.push(FieldError::forbidden(&path, WITH_CONTINUE));
        }
        errors
    }

    /// One name in the path is a selector like any other, and must not contradict one.
    fn settle_name(&mut self, name: &str) -> Result<(), Status> {
        if name.is_empty() {
            return Ok(());
        }
        let fields = &mut self.selection.fields;
        if fields.is_empty() {
            fields.requirements.push(FieldRequirement {
                field: "metadata.name".to_owned(),
                equal: true,
                value: name.to_owned(),
            });
        } else if fields.exact("metadata.name") != Some(name) {
            let why = "fieldSelector metadata.name doesn't match requested name";
            return Err(Status::bad_request(why));
        }
        Ok(())
    }

    /// What a list shall show; asked when there is no continue token.
    pub fn list_match(&self) -> Result<Match, Status> {
        let asked = revision(&self.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        Ok(match (asked, self.resource_version_match.as_str()) {
            (None, _) => Match::Newest,
            (Some(revision), EXACT) => Match::Exact(revision),
            // Kubernetes' older rule: a limit with a revision that is not 0 is exact.
            (Some(revision), "") if self.limit.is_some() && revision.0 > 0 => {
                Match::Exact(revision)
            }
            (Some(revision), _) => Match::NotOlderThan(revision),
        })
    }

    /// What can be chosen of objects that are in another version than that of the request: fields are
    /// looked at once they are converted. All come at once then, as a limit may be ignored.
    pub fn before_conversion(&self) -> Self {
        let mut options = self.clone();
        if self.selection.asks_for_fields() {
            options.selection.fields = FieldSelector::default();
            options.limit = None;
        }
        options
    }

    /// A list of any state there is comes from upstream's cache, which knows no pages.
    pub fn page_limit(&self) -> Option<usize> {
        let is_any = self.resource_version == "0" && self.resource_version_match != EXACT;
        self.limit.filter(|_| !is_any)
    }
}

fn dry_run_errors(values: &[&str]) -> Vec<FieldError> {
    if values.iter().all(|value| *value == "All") {
        return Vec::new();
    }
    let path = Path::root("dryRun");
    vec![FieldError::not_supported(&path, values.to_vec(), &["All"])]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Options of delete, from the body or else from the query.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub dry_run: bool,
    pub grace_period_seconds: Option<i64>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub propagation: Option<Propagation>,
    /// The older way to say it, which `propagation` includes.
    pub orphan_dependents: Option<bool>,
}

impl DeleteOptions {
    pub fn from_body(body: &Value) -> Result<Self, Status> {
        let preconditions = &body["preconditions"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy = body["propagationPolicy"].as_str();
        let orphans = body["orphanDependents"].as_bool();
        let runs = body["dryRun"].as_array().map_or(&[][..], Vec::as_slice);
        let runs: Vec<&str> = runs.iter().filter_map(Value::as_str).collect();
        Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
            orphan_dependents: orphans,
            ..Self::default()
        }
        .checked(policy, &runs)
    }

    pub fn from_query(query: &Query) -> Result<Self, Status> {
        let runs: Vec<&str> = query.all("dryRun").collect();
        let policy = query.get("propagationPolicy");
        Self {
            grace_period_seconds: integer(query, "gracePeriodSeconds")?,
            uid: query.get("uid").map(str::to_owned),
            resource_version: query.get("resourceVersion").map(str::to_owned),
            orphan_dependents: boolean(query, "orphanDependents"),
            ..Self::default()
        }
        .checked(policy, &runs)
    }

    /// Puts the fields that are set into an object of this kind.
    pub fn show(&self, options: &mut Value) {
        if let Some(seconds) = self.grace_period_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        for (name, value) in [
            ("uid", &self.uid),
            ("resourceVersion", &self.resource_version),
        ] {
            if let Some(text) = value {
                options["preconditions"][name] = text.as_str().into();
            }
        }
        match (self.orphan_dependents, self.propagation) {
            (Some(orphans), _) => options["orphanDependents"] = orphans.into(),
            (None, Some(propagation)) => options["propagationPolicy"] = propagation.name().into(),
            (None, None) => {}
        }
    }

    fn checked(mut self, policy: Option<&str>, runs: &[&str]) -> Result<Self, Status> {
        let path = Path::root("propagationPolicy");
        let mut errors = Vec::new();
        if let (Some(policy), Some(_)) = (policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, policy, why));
        }
        self.propagation = match (policy, self.orphan_dependents) {
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &supported));
                None
            }
        };
        errors.extend(dry_run_errors(runs));
        if !errors.is_empty() {
            return Err(invalid("DeleteOptions", &errors));
        }
        self.dry_run = !runs.is_empty();
        // A negative grace means the least there is, as upstream has it.
        self.grace_period_seconds = self
            .grace_period_seconds
            .map(|seconds| if seconds < 0 { 1 } else { seconds });
        Ok(self)
    }
}
