//! Server-side apply: what one manager wants of an object, laid over it or made of it.

use super::asked::Asked;
use super::decode::Expected;
use super::patch::settle;
use super::write::{self, ATTEMPTS_MAX, New, Updated, Wanted};
use super::write_options::{Kind, WriteOptions};
use crate::registry::Stored;
use crate::tunnel::Body;
use crate::warnings::Warnings;
use crate::{Api, body};
use bytes::Bytes;
use coracle_api::apply::{Applied, Writer};
use coracle_api::decode::{DecodeError, FieldValidation};
use coracle_api::object::Object;
use coracle_api::status::Status;
use coracle_api::timestamp::format_time;
use http::{Response, StatusCode};
use serde_json::{Map, Value};

pub async fn apply(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let bytes = body::read(request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Apply)?;
    let configuration = Configuration::read(&bytes);
    let updated = applied(api, asked, &configuration, &options).await?;
    let code = if updated.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(asked.shape.object(code, asked.resource, &updated.object))
}

/// The body of an apply. What is wrong with it is said only when it is used.
#[derive(Debug)]
pub struct Configuration {
    read: Result<Map<String, Value>, Status>,
    /// Keys that it has twice.
    twice: Option<String>,
}

impl Configuration {
    pub fn read(bytes: &Bytes) -> Self {
        match body::configuration(bytes) {
            Ok((map, twice)) => Self {
                read: Ok(map),
                twice,
            },
            Err(error) => Self {
                read: Err(Status::bad_request(format!("error decoding YAML: {error}"))),
                twice: None,
            },
        }
    }

    pub fn get(&self) -> Result<&Map<String, Value>, Status> {
        self.read.as_ref().map_err(Status::clone)
    }

    /// Refuses or warns of keys that the body has twice.
    pub fn check_keys(&self, mode: FieldValidation, warnings: &Warnings) -> Result<(), Status> {
        match (&self.twice, mode) {
            (Some(twice), FieldValidation::Strict) => {
                let why = format!("error strict decoding YAML: {twice}");
                Err(Status::bad_request(why))
            }
            (Some(twice), FieldValidation::Warn) => {
                // As upstream: a header has one line, the last.
                let last = twice.lines().last().unwrap_or_default();
                warnings.add([last.trim().to_owned()]);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

async fn applied(
    api: &Api,
    asked: &Asked<'_>,
    configuration: &Configuration,
    options: &WriteOptions,
) -> Result<Updated, Status> {
    let name = asked.info.name.as_str();
    let make = |live: Option<&Object>| {
        let object = make(asked, configuration, options, live)?;
        configuration.check_keys(options.field_validation, &asked.warnings)?;
        Ok::<Object, Status>(object)
    };
    for _ in 0..ATTEMPTS_MAX {
        let want = |stored: &Stored| {
            let mut object = make(Some(&stored.object))?;
            settle(asked, &mut object)?;
            Ok(Wanted::managed(object))
        };
        match write::update(api, asked, name, options, want).await {
            Err(status) if status.code == 404 && asked.subresource.is_none() => {}
            other => return other,
        }
        let mut object = make(None)?;
        refuse_uid(asked, &object)?;
        write::version_of(object.resource_version())?;
        object.remove(&["metadata", "resourceVersion"]);
        settle(asked, &mut object)?;
        write::may_create(api, asked)?;
        match write::create(api, asked, New::managed(object), options).await {
            // Somebody else made it meanwhile: it is there to be applied to.
            Err(status) if status.reason == "AlreadyExists" => {}
            other => {
                return other.map(|object| Updated {
                    object,
                    created: true,
                });
            }
        }
    }
    Err(Status::modified(asked.subject(name)))
}

fn refuse_uid(asked: &Asked<'_>, object: &Object) -> Result<(), Status> {
    if object.uid().is_empty() {
        return Ok(());
    }
    let why = format!(
        "uid mismatch: the provided object specified uid {}, and no existing object was found",
        object.uid()
    );
    Err(Status::conflict(asked.subject(&asked.info.name), &why))
}

/// The object with the configuration over it, decoded and defaulted.
fn make(
    asked: &Asked<'_>,
    configuration: &Configuration,
    options: &WriteOptions,
    live: Option<&Object>,
) -> Result<Object, Status> {
    let resource = asked.resource;
    let (version, now) = (resource.api_version(), format_time(asked.now));
    let (part, subresource) = (asked.part(), asked.info.subresource.as_str());
    let manager = options.manager.as_str();
    let writer = Writer::of(resource, &version, part, subresource, manager, &now);
    let patch = configuration.get()?;
    let applied = writer.apply(live, patch, options.force)?;
    let expected = Expected::of(resource);
    decoded(&expected, applied, patch).map(|mut object| {
        resource.default(&mut object);
        object
    })
}

/// What was merged, as an object of its type.
pub fn decoded(
    expected: &Expected,
    applied: Applied,
    patch: &Map<String, Value>,
) -> Result<Object, Status> {
    let mut object = applied.object;
    let list = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.as_object_mut()?.remove("managedFields"));
    let conformed = expected.conform(Value::Object(object), FieldValidation::Ignore);
    let (mut object, _) = conformed.map_err(|error| {
        if error == DecodeError::TooDeep {
            return expected.message(&error, b"");
        }
        let (version, kind) = (expected.api_version.as_str(), expected.kind);
        let shown = coracle_api::apply::shown(version, kind, patch);
        let gvk = coracle_api::apply::gvk(version, kind);
        Status::failed(format!(
            "failed to convert new object ({shown}) to proper version: unable to convert \
             unstructured object to {gvk}: {error}"
        ))
    })?;
    coracle_api::apply::put_managed_fields(object.root_mut(), list);
    Ok(object)
}
