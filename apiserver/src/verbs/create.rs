//! `POST` of a collection.

use super::asked::Asked;
use super::decode::Expected;
use super::warnings::Warnings;
use super::write::{New, create as insert};
use super::write_options::{Kind, WriteOptions};
use crate::reviews::{self, Question};
use crate::tunnel::Body;
use crate::{Api, body};
use coracle_api::status::Status;
use http::{Response, StatusCode};

pub async fn create(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let warnings = Warnings::default();
    let answer = created(api, asked, request_body, &warnings).await;
    warnings.on(answer)
}

async fn created(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
    warnings: &Warnings,
) -> Result<Response<Body>, Status> {
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let (mut object, unknown) =
        Expected::of(asked.resource).decode(&bytes, options.field_validation)?;
    warnings.add(unknown);
    drop(bytes);
    asked.resource.default(&mut object);
    let created = if reviews::is_review(asked.resource) {
        asked.settle_namespace(&mut object)?;
        let namespace = asked.namespace();
        let (resource, user, now) = (asked.resource, asked.user, asked.now);
        api.access.reviews.answer(
            &Question {
                resource,
                user,
                namespace,
                now,
            },
            object,
        )?
    } else {
        insert(api, asked, New::unmanaged(object), &options, warnings).await?
    };
    Ok(asked
        .shape
        .object(StatusCode::CREATED, asked.resource, &created))
}
