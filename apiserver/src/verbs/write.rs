//! What create, update and patch share: the order of a write.
//!
//! Decode and default come before; here it is mutating admission, prepare, validate, validating
//! admission, commit. The order is part of the contract.

use super::asked::Asked;
use crate::Api;
use crate::admission::Operation;
use crate::registry::{self, Refusal, Stored};
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::object::Object;
use coracle_api::resource::{Part, Requester, Resource};
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_api::{json, meta_validate};
use coracle_store::{Expect, Revision};
use serde_json::{Map, Value};

/// A write that somebody else got ahead of is decided anew this often.
pub const ATTEMPTS_MAX: usize = 5;
const RESERVED: [&str; 6] = [
    "selfLink",
    "managedFields",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(
        registry::kind_subject(resource, name),
        errors,
    ))
}

fn set_revision(object: &mut Object, revision: Revision) {
    object.set(
        &["metadata", "resourceVersion"],
        revision.to_string().into(),
    );
}

/// Calls `act` with the user as the rules of kinds know one.
fn with_requester<T>(asked: &Asked<'_>, act: impl FnOnce(&Requester<'_>) -> T) -> T {
    let user = asked.user;
    let extra = (!user.extra.is_empty()).then(|| {
        let pairs = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), Value::from(values.clone())));
        Value::Object(pairs.collect::<Map<_, _>>())
    });
    act(&Requester {
        name: &user.name,
        uid: &user.uid,
        groups: &user.groups,
        extra: extra.as_ref(),
    })
}

/// Creates a decoded and defaulted object. `is_generated` when its name may be made anew.
pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    mut object: Object,
    dry_run: bool,
) -> Result<Object, Status> {
    let resource = asked.resource;
    if !object.resource_version().is_empty() {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Status::bad_request(why));
    }
    asked.settle_namespace(&mut object)?;
    let prefix = object.str(&["metadata", "generateName"]).to_owned();
    let is_generated = object.name().is_empty() && !prefix.is_empty();
    let attributes = asked.attributes(Operation::Create, "", None, dry_run);
    api.access
        .admission
        .mutate(&mut object, &attributes)
        .await?;
    let now = format_time(asked.now);
    give_identity(resource, &mut object, &now);
    for _ in 0..ATTEMPTS_MAX {
        if is_generated {
            object.set(&["metadata", "name"], generate_name(&prefix).into());
        }
        let mut hold = api.allocator.hold_for(resource).await;
        let mut stored = object.clone();
        with_requester(asked, |by| {
            resource
                .rules
                .stamp(&mut stored, None, Part::Main, by, &now);
        });
        let mut errors = ErrorList::new();
        if let Some(hold) = &mut hold {
            errors.extend(
                hold.assign(&api.registry.store, &mut stored, None)
                    .err()
                    .unwrap_or_default(),
            );
        }
        errors.extend(meta_validate::validate_metadata(&stored, resource));
        errors.extend(resource.rules.validate_create(&stored));
        invalid(resource, stored.name(), &errors)?;
        let attributes = asked.attributes(Operation::Create, "", None, dry_run);
        api.access.admission.validate(Some(&stored), &attributes)?;
        if dry_run {
            return dry_create(api, asked, stored);
        }
        let durability = resource.rules.durability(&stored, None, Part::Main);
        match api
            .registry
            .put(resource, &stored, Expect::Absent, durability)
            .await
        {
            Ok(revision) => {
                set_revision(&mut stored, revision);
                return Ok(stored);
            }
            Err(Refusal::Exists) if is_generated => {}
            Err(refusal) => return Err(refusal.status(resource, stored.name())),
        }
    }
    Err(Status::already_exists(asked.subject(&prefix)))
}

/// What every new object gets, and what no client gives it.
fn give_identity(resource: &Resource, object: &mut Object, now: &str) {
    for field in RESERVED {
        object.remove(&["metadata", field]);
    }
    resource.rules.prepare_create(object);
    object.set(
        &["metadata", "uid"],
        uuid::Uuid::new_v4().to_string().into(),
    );
    object.set(&["metadata", "creationTimestamp"], now.into());
    let generation = resource.rules.first_generation();
    if resource.rules.counts_generations() && generation > 0 {
        object.set(&["metadata", "generation"], generation.into());
    }
}

fn dry_create(api: &Api, asked: &Asked<'_>, object: Object) -> Result<Object, Status> {
    let name = object.name();
    match api.registry.entry(asked.resource, object.namespace(), name) {
        Some(_) => Err(Status::already_exists(asked.subject(name))),
        None => Ok(object),
    }
}

/// Five characters that do not make words, after what fits of the prefix.
fn generate_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const RANDOM: usize = 5;
    const PREFIX_MAX: usize = 63 - RANDOM;
    let mut name: String = prefix.chars().take(PREFIX_MAX).collect();
    for _ in 0..RANDOM {
        let place = rand::random_range(0..LETTERS.len());
        name.push(char::from(LETTERS[place]));
    }
    name
}

/// What an update makes of the stored object.
#[derive(Debug)]
pub struct Wanted {
    pub object: Object,
    pub warnings: Vec<String>,
}

/// How an update went.
#[derive(Debug)]
pub struct Updated {
    pub object: Object,
    pub warnings: Vec<String>,
    pub created: bool,
}

/// Updates the named object to what `want` makes of it; `want` is called anew when somebody else
/// got ahead, unless it insists on a `resourceVersion`.
pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    dry_run: bool,
    want: impl Fn(&Stored) -> Result<Wanted, Status> + Sync,
) -> Result<Updated, Status> {
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.registry.get(asked.resource, asked.namespace(), name)?;
        let wanted = want(&stored)?;
        let version = wanted.object.resource_version().to_owned();
        let insists = !version.is_empty() && version != "0";
        if insists && version != stored.revision.to_string() {
            return Err(Status::modified(asked.subject(name)));
        }
        match once(api, asked, name, dry_run, &stored, wanted.object).await {
            Ok(object) => {
                return Ok(Updated {
                    object,
                    warnings: wanted.warnings,
                    created: false,
                });
            }
            Err(Failure::Overtaken) if insists_on_client(asked, insists) => {
                return Err(Status::modified(asked.subject(name)));
            }
            Err(Failure::Overtaken) => {}
            Err(Failure::Refused(status)) => return Err(status),
        }
    }
    Err(Status::modified(asked.subject(name)))
}

/// A patch carries the version of what it was applied to, which is no wish of the client's.
fn insists_on_client(asked: &Asked<'_>, insists: bool) -> bool {
    insists && asked.info.verb != "patch"
}

enum Failure {
    Overtaken,
    Refused(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

async fn once(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    dry_run: bool,
    stored: &Stored,
    mut new: Object,
) -> Result<Object, Failure> {
    let (resource, part, old) = (asked.resource, asked.part(), &stored.object);
    check_identity(asked, name, &mut new, old)?;
    let mut hold = api.allocator.hold_for(resource).await;
    let attributes = asked.attributes(Operation::Update, name, Some(old), dry_run);
    api.access.admission.mutate(&mut new, &attributes).await?;
    resource.rules.prepare_update(&mut new, old, part);
    keep_identity(&mut new, old);
    let now = format_time(asked.now);
    with_requester(asked, |by| {
        resource.rules.stamp(&mut new, Some(old), part, by, &now)
    });
    // A status is no change of what is wanted, even where it takes annotations along.
    let raised = part != Part::Status && resource.rules.raises_generation(&new, old);
    if resource.rules.counts_generations() {
        let generation = old.generation() + i64::from(raised);
        if generation > 0 {
            new.set(&["metadata", "generation"], generation.into());
        }
    }
    set_revision(&mut new, stored.revision);
    let mut errors = ErrorList::new();
    if let Some(hold) = &mut hold {
        errors.extend(
            hold.assign(&api.registry.store, &mut new, Some(old))
                .err()
                .unwrap_or_default(),
        );
    }
    errors.extend(meta_validate::validate_metadata_update(&new, old));
    errors.extend(resource.rules.validate_update(&new, old, part));
    invalid(resource, name, &errors)?;
    let attributes = asked.attributes(Operation::Update, name, Some(old), dry_run);
    api.access.admission.validate(Some(&new), &attributes)?;
    if dry_run || same(&new, old) {
        return Ok(new);
    }
    let durability = resource.rules.durability(&new, Some(old), part);
    let expect = Expect::At(stored.revision);
    let written = if super::delete::is_finished(&new) {
        api.registry
            .delete(resource, &new, expect, durability)
            .await
    } else {
        api.registry.put(resource, &new, expect, durability).await
    };
    match written {
        Ok(revision) => {
            set_revision(&mut new, revision);
            Ok(new)
        }
        Err(Refusal::Changed) => Err(Failure::Overtaken),
        Err(refusal) => Err(refusal.status(resource, name).into()),
    }
}

/// Compares as JSON means it; `old` carries its own revision.
fn same(new: &Object, old: &Object) -> bool {
    new.root().len() == old.root().len()
        && new.root().iter().all(|(field, value)| {
            old.root()
                .get(field)
                .is_some_and(|other| json::same(value, other))
        })
}

fn check_identity(
    asked: &Asked<'_>,
    name: &str,
    new: &mut Object,
    old: &Object,
) -> Result<(), Status> {
    asked.settle_namespace(new)?;
    match new.name() {
        "" => new.set(&["metadata", "name"], name.into()),
        own if own == name => {}
        own => {
            return Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            )));
        }
    }
    if !new.uid().is_empty() && new.uid() != old.uid() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            new.uid(),
            old.uid()
        );
        return Err(Status::conflict(asked.subject(name), &why));
    }
    let needs_version = asked.info.verb == "update" && !asked.resource.rules.unconditional_update();
    if needs_version && new.resource_version().is_empty() {
        let path = Path::root("metadata").child("resourceVersion");
        let error = FieldError::invalid(&path, "", "must be specified for an update");
        return Err(Status::invalid(
            registry::kind_subject(asked.resource, name),
            &[error],
        ));
    }
    Ok(())
}

/// What no client changes.
fn keep_identity(new: &mut Object, old: &Object) {
    const KEPT: [&str; 5] = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ];
    for field in KEPT {
        match old.get(&["metadata", field]) {
            Some(value) => new.set(&["metadata", field], value.clone()),
            None => drop(new.remove(&["metadata", field])),
        }
    }
    new.remove(&["metadata", "selfLink"]);
    new.remove(&["metadata", "managedFields"]);
}
