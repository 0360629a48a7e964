//! How an object comes to be.

use super::{invalid, put_list, set_revision, validated, with_requester};
use crate::Api;
use crate::admission::Operation;
use crate::admission::resource_quota::Charge;
use crate::registry::Refusal;
use crate::verbs::asked::Asked;
use crate::verbs::references;
use crate::verbs::write_options::WriteOptions;
use coracle_api::apply::Writer;
use coracle_api::meta_validate;
use coracle_api::object::Object;
use coracle_api::resource::{Part, Resource};
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use coracle_store::{CommitError, Expect};

/// A generated name that is taken is made anew this often, as upstream does.
const NAMES_MAX: usize = 8;

/// What a client does not get to say of a new object.
const SYSTEM_FIELDS: [&str; 5] = [
    "selfLink",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// An object that is to be, decoded and defaulted.
#[derive(Debug)]
pub struct New {
    object: Object,
    /// The object says who manages it.
    is_managed: bool,
}

impl New {
    pub fn unmanaged(object: Object) -> Self {
        Self {
            object,
            is_managed: false,
        }
    }

    pub fn managed(object: Object) -> Self {
        Self {
            object,
            is_managed: true,
        }
    }
}

pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    new: New,
    options: &WriteOptions,
) -> Result<Object, Status> {
    let (resource, dry_run) = (asked.resource, options.dry_run);
    let mut object = new.object;
    if coracle_api::custom::is_ending(resource) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(asked.subject(object.name()), why));
    }
    for field in SYSTEM_FIELDS {
        object.remove(&["metadata", field]);
    }
    asked.settle_namespace(&mut object)?;
    let now = format_time(asked.now);
    if !new.is_managed {
        let version = resource.api_version();
        let (part, manager) = (asked.part(), options.manager.as_str());
        let writer = Writer::of(resource, &version, part, "", manager, &now);
        let list = writer.update(None, &object);
        put_list(&mut object, list);
    }
    let name = object.name().to_owned();
    let attributes = asked.attributes(Operation::Create, &name, None, dry_run);
    api.access
        .admission
        .mutate(&mut object, &attributes)
        .await?;
    // A webhook may say otherwise than the client.
    asked.settle_namespace(&mut object)?;
    let prefix = object.str(&["metadata", "generateName"]).to_owned();
    let is_generated = object.name().is_empty() && !prefix.is_empty();
    asked.warnings.add(resource.rules.early_warnings(&object));
    let list = object.remove(&["metadata", "managedFields"]);
    give_identity(resource, &mut object, &now);
    put_list(&mut object, list);
    if !is_generated {
        let created = once(api, asked, object, options, &now).await;
        return created.map_err(|status| no_unique_name(status, &prefix));
    }
    for tries in 1.. {
        let mut named = object.clone();
        named.set(&["metadata", "name"], generate_name(&prefix).into());
        match once(api, asked, named, options, &now).await {
            Err(status) if status.reason == "AlreadyExists" && tries < NAMES_MAX => {}
            other => return other.map_err(|status| no_unique_name(status, &prefix)),
        }
    }
    unreachable!("the last try returns")
}

/// One attempt, with a name that may be taken.
async fn once(
    api: &Api,
    asked: &Asked<'_>,
    mut stored: Object,
    options: &WriteOptions,
    now: &str,
) -> Result<Object, Status> {
    let resource = asked.resource;
    let mut hold = api.allocator.hold_for(resource).await;
    with_requester(asked, |by| {
        resource.rules.stamp(&mut stored, None, Part::Main, by, now);
    });
    if let Some(hold) = &mut hold {
        hold.assign(&api.registry.store, &mut stored, None, options.dry_run)?;
    }
    let of_metadata = meta_validate::validate_metadata(&stored, resource);
    let of_rules = validated(resource, || resource.rules.validate_create(&stored));
    let errors = references::validate(api, asked, &stored, None, of_metadata, of_rules);
    invalid(resource, stored.name(), &errors)?;
    asked.warnings.add(resource.rules.warnings(&stored));
    let attributes = asked.attributes(Operation::Create, stored.name(), None, options.dry_run);
    api.access.admission.validate(&stored, &attributes).await?;
    // A name of its own: the object changes while its charge is held.
    let attributes = asked.attributes(Operation::Create, "", None, options.dry_run);
    let mut charge = super::charge(api, &stored, attributes, asked.now).await?;
    let version = stored.resource_version().parse::<u64>();
    if version.is_ok_and(|version| version != 0) {
        let why = "resourceVersion should not be set on objects to be created";
        return Err(Status::failed(why));
    }
    if options.dry_run {
        let found = api
            .registry
            .entry(resource, stored.namespace(), stored.name());
        return match found {
            Some(_) => Err(exists(api, asked, &stored)),
            None => Ok(stored),
        };
    }
    if let Some(hold) = &mut hold {
        hold.claim(&api.registry, &stored, now).await?;
    }
    let committed = commit(api, asked, &mut stored, &mut charge).await;
    if let Some(hold) = &mut hold {
        hold.finish(&api.registry, &stored, committed.is_ok()).await;
    }
    committed.map(|()| stored)
}

async fn commit(
    api: &Api,
    asked: &Asked<'_>,
    stored: &mut Object,
    charge: &mut Charge<'_>,
) -> Result<(), Status> {
    let resource = asked.resource;
    let durability = resource.rules.durability(stored, None, Part::Main);
    let expect = Expect::Absent;
    let mut written = charge.put(resource, stored, expect, durability).await;
    if matches!(written, Err(Refusal::Failed(CommitError::TooLarge { .. }))) {
        // Who manages what can be large, and is worth less than the object.
        put_list(stored, None);
        written = charge.put(resource, stored, expect, durability).await;
    }
    match written {
        Ok(revision) => {
            set_revision(stored, revision);
            Ok(())
        }
        Err(Refusal::Exists) => Err(exists(api, asked, stored)),
        Err(refusal) => Err(refusal.status(resource, stored.name())),
    }
}

/// The 409, which says when the one that is there is about to go.
fn exists(api: &Api, asked: &Asked<'_>, object: &Object) -> Status {
    let mut status = Status::already_exists(asked.subject(object.name()));
    let found = api
        .registry
        .get(asked.resource, object.namespace(), object.name());
    if found.is_ok_and(|found| found.object.is_deleting()) {
        status.message.insert_str(0, "object is being deleted: ");
    }
    status
}

/// What a name that is taken means for an object that let the server choose.
fn no_unique_name(mut status: Status, prefix: &str) -> Status {
    if status.reason == "AlreadyExists" && !prefix.is_empty() {
        let why = ", the server was not able to generate a unique name for the object";
        status.message.push_str(why);
        status.details["retryAfterSeconds"] = 1.into();
    }
    status
}

/// What every new object gets.
fn give_identity(resource: &Resource, object: &mut Object, now: &str) {
    resource.drop_gated(object);
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

/// Five characters that do not make words, after what fits of the prefix.
pub fn generate_name(prefix: &str) -> String {
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

/// Whoever may not create does not create by an update or an apply either.
pub fn may_create(api: &Api, asked: &Asked<'_>) -> Result<(), Status> {
    let mut info = asked.info.clone();
    "create".clone_into(&mut info.verb);
    api.access.authorizer.check(asked.user, &info)
}

/// The name in the body must be the one on the URL.
pub fn check_name(asked: &Asked<'_>, object: &Object) -> Result<(), Status> {
    let name = asked.info.name.as_str();
    match object.name() {
        own if own == name => Ok(()),
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be \
             provided"
        ))),
        own => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
    }
}
