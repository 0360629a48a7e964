//! The subresource `scale`: how many replicas, whatever the kind.

use super::apply::{self, Configuration};
use super::asked::Asked;
use super::decode::Expected;
use super::patch;
use super::write::{self, Wanted};
use super::write_options::{Kind, WriteOptions};
use crate::body::Encoded;
use crate::registry::Stored;
use crate::respond::Target;
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::apply::scale as managers;
use coracle_api::apply::{Filter, Writer, put_managed_fields};
use coracle_api::object::Object;
use coracle_api::scale;
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp::format_time;
use http::{Response, StatusCode};
use serde_json::Value;

const TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";
const VERSION: &str = "autoscaling/v1";
const KIND: &str = "Scale";

fn expected() -> Expected {
    Expected {
        api_version: VERSION.to_owned(),
        kind: KIND,
        type_name: TYPE.to_owned(),
        custom: None,
    }
}

/// A Scale has no row in the catalogue: its forms are made here.
fn answer(asked: &Asked<'_>, object: &Object) -> Response<Body> {
    let (scale, shape) = (scale::read(asked.resource, object), &asked.shape);
    let shown = match shape.target {
        Target::Table => scale::table(&scale, shape.include, shape.now),
        Target::Object => scale.into_value(),
        Target::Metadata | Target::MetadataList => shape.partial(&scale),
    };
    shape.document(StatusCode::OK, &shown)
}

pub async fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let stored = api
        .get(asked.resource, asked.namespace(), &asked.info.name)
        .await?;
    if let Some(why) = scale::missing(asked.resource, &stored.object) {
        return Err(Status::internal(why));
    }
    Ok(answer(asked, &stored.object))
}

pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let encoded = Encoded::read(&asked.request.headers, request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Update)?;
    let (mut wanted, unknown) = expected().decode(&encoded, options.field_validation)?;
    asked.warnings.add(unknown);
    patch::settle(asked, &mut wanted)?;
    let want = |stored: &Stored| {
        let before = shown(asked, stored);
        let mut wanted = wanted.clone();
        let now = format_time(asked.now);
        let list = writer(&options, &now).update(Some(&before), &wanted);
        put_managed_fields(wanted.root_mut(), list);
        scaled(asked, stored, &wanted)
    };
    let name = asked.info.name.as_str();
    let updated = write::update(api, asked, name, &options, want).await?;
    Ok(answer(asked, &updated.object))
}

pub async fn patch(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let content = patch::content(asked)?;
    let bytes = body::read(request_body).await?;
    let is_apply = content == body::Content::ApplyPatch;
    let kind = if is_apply { Kind::Apply } else { Kind::Patch };
    let options = WriteOptions::parse(asked, kind)?;
    let configuration = is_apply.then(|| Configuration::read(&bytes));
    let read = (!is_apply).then(|| patch::read(content, bytes));
    let now = format_time(asked.now);
    let want = |stored: &Stored| {
        let before = shown(asked, stored);
        let mut wanted = match (&configuration, &read) {
            (Some(configuration), _) => {
                let patch = configuration.get()?;
                let applied = writer(&options, &now).apply(Some(&before), patch, options.force)?;
                configuration.check_keys(options.field_validation, &asked.warnings)?;
                apply::decoded(&expected(), applied, patch)?
            }
            (None, Some(read)) => {
                let read = read.as_ref().map_err(Status::clone)?;
                let wanted = apply_patch(asked, &options, read, &before)?;
                let list = writer(&options, &now).update(Some(&before), &wanted);
                let mut wanted = wanted;
                put_managed_fields(wanted.root_mut(), list);
                wanted
            }
            (None, None) => before,
        };
        patch::settle(asked, &mut wanted)?;
        scaled(asked, stored, &wanted)
    };
    let name = asked.info.name.as_str();
    let updated = write::update(api, asked, name, &options, want).await?;
    Ok(answer(asked, &updated.object))
}

fn apply_patch(
    asked: &Asked<'_>,
    options: &WriteOptions,
    read: &patch::Patch,
    before: &Object,
) -> Result<Object, Status> {
    let name = asked.info.name.as_str();
    let patched = patch::apply(read, &before.to_value(), TYPE, asked, name)?;
    let (wanted, unknown) = patch::conform(&expected(), patched, options, read)?;
    asked.warnings.add(unknown);
    Ok(wanted)
}

fn writer<'w>(options: &'w WriteOptions, now: &'w str) -> Writer<'w> {
    Writer {
        api_version: VERSION,
        kind: KIND,
        type_name: TYPE,
        family: None,
        subresource: "scale",
        filter: Filter::All,
        manager: &options.manager,
        now,
    }
}

fn managed_fields(object: &Object) -> Option<&Value> {
    object.get(&["metadata", "managedFields"])
}

/// The Scale of an object, with who manages its replicas.
fn shown(asked: &Asked<'_>, stored: &Stored) -> Object {
    let mut scale = scale::read(asked.resource, &stored.object);
    let version = asked.resource.api_version();
    let list = managers::of_parent(managed_fields(&stored.object), &version);
    put_managed_fields(scale.root_mut(), list);
    scale
}

/// The object with the replicas of a Scale, and with the managers that the Scale has.
fn scaled(asked: &Asked<'_>, stored: &Stored, wanted: &Object) -> Result<Wanted, Status> {
    let name = asked.info.name.as_str();
    let errors = scale::validate(wanted);
    if !errors.is_empty() {
        let subject = Subject {
            group: "autoscaling",
            resource: KIND,
            name,
        };
        return Err(Status::invalid(subject, &errors));
    }
    let plural = format!("{}/scale", asked.resource.plural);
    let uid = stored.object.uid();
    if !wanted.uid().is_empty() && wanted.uid() != uid {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {uid}",
            wanted.uid()
        );
        let subject = Subject {
            group: asked.resource.group,
            resource: &plural,
            name,
        };
        return Err(Status::conflict(subject, &why));
    }
    let mut object = stored.object.clone();
    let version = asked.resource.api_version();
    let list = managers::to_parent(
        managed_fields(&stored.object),
        managed_fields(wanted),
        &version,
    );
    scale::write(asked.resource, &mut object, wanted);
    put_managed_fields(object.root_mut(), list);
    match wanted.resource_version() {
        "" => drop(object.remove(&["metadata", "resourceVersion"])),
        version => object.set(&["metadata", "resourceVersion"], version.into()),
    }
    Ok(Wanted::managed(object))
}
