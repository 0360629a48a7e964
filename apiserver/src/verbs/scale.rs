//! The subresource `scale`: how many replicas, whatever the kind.

use super::asked::Asked;
use super::decode::Expected;
use super::patch;
use super::write::{self, Wanted};
use crate::options::WriteOptions;
use crate::registry::{self, Stored};
use crate::respond::{self, Form};
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::object::Object;
use coracle_api::scale;
use coracle_api::status::{Status, Subject};
use http::{Response, StatusCode};

fn expected() -> Expected {
    Expected {
        api_version: "autoscaling/v1".to_owned(),
        kind: "Scale",
        type_name: "io.k8s.api.autoscaling.v1.Scale".to_owned(),
    }
}

/// A Scale has no row in the catalogue: its forms are made here.
fn answer(asked: &Asked<'_>, object: &Object) -> Response<Body> {
    let (scale, shape) = (scale::read(asked.resource, object), &asked.shape);
    let shown = match shape.form {
        Form::Table => scale::table(&scale, shape.include, shape.now),
        _ => scale.into_value(),
    };
    respond::document(StatusCode::OK, &shown, shape.form)
}

pub fn get(api: &Api, asked: &Asked<'_>) -> Result<Response<Body>, Status> {
    let stored = api
        .registry
        .get(asked.resource, asked.namespace(), &asked.info.name)?;
    Ok(answer(asked, &stored.object))
}

pub async fn update(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&asked.query, "UpdateOptions")?;
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let (wanted, _) = expected().decode(&bytes, options.field_validation)?;
    let want = |stored: &Stored| scaled(asked, stored, &wanted);
    let updated = write::update(api, asked, &asked.info.name, options.dry_run, want).await?;
    Ok(answer(asked, &updated.object))
}

pub async fn patch(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&asked.query, "PatchOptions")?;
    let read = patch::read(asked, request_body).await?;
    let name = asked.info.name.as_str();
    let want = |stored: &Stored| {
        let current = scale::read(asked.resource, &stored.object).into_value();
        let expected = expected();
        let patched = patch::apply(&read, &current, &expected.type_name, asked, name)?;
        let (wanted, _) = expected
            .conform(patched, options.field_validation)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        scaled(asked, stored, &wanted)
    };
    let updated = write::update(api, asked, name, options.dry_run, want).await?;
    Ok(answer(asked, &updated.object))
}

fn scaled(asked: &Asked<'_>, stored: &Stored, wanted: &Object) -> Result<Wanted, Status> {
    let errors = scale::validate(wanted);
    if !errors.is_empty() {
        let name = asked.info.name.as_str();
        let subject = Subject {
            group: "autoscaling",
            resource: "Scale",
            name,
        };
        return Err(Status::invalid(subject, &errors));
    }
    let mut object = stored.object.clone();
    let version = wanted.resource_version();
    if !version.is_empty() && version != stored.revision.to_string() {
        let name = asked.info.name.as_str();
        return Err(Status::modified(registry::subject(asked.resource, name)));
    }
    scale::write(asked.resource, &mut object, wanted);
    Ok(Wanted {
        object,
        warnings: Vec::new(),
    })
}
