//! The subresource `binding`, and the resource `bindings`: puts a pod on a node.

use super::asked::Asked;
use super::decode::Expected;
use super::write_options::{Kind, WriteOptions};
use crate::admission::Operation;
use crate::registry::{self, Refusal};
use crate::respond::json_bytes;
use crate::tunnel::Body;
use crate::verbs::write::ATTEMPTS_MAX;
use crate::{Api, body};
use coracle_api::catalogue;
use coracle_api::kinds::pod::binding;
use coracle_api::object::Object;
use coracle_api::resource::Durability;
use coracle_api::status::{Status, Subject};
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::{Response, StatusCode};
use serde_json::json;

/// The kind of the resource `bindings`, which is never stored.
pub const KIND: &str = "Binding";
pub const SUBRESOURCE: &str = "binding";

pub async fn bind(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let bytes = body::read_object(&asked.request.headers, request_body).await?;
    let expected = Expected {
        api_version: "v1".to_owned(),
        kind: KIND,
        type_name: "io.k8s.api.core.v1.Binding".to_owned(),
    };
    let (mut object, _) = expected.decode(&bytes, options.field_validation)?;
    let name = if asked.info.name.is_empty() {
        object.name().to_owned()
    } else {
        asked.info.name.clone()
    };
    if !object.name().is_empty() && object.name() != name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    object.set(&["metadata", "name"], name.as_str().into());
    asked.settle_namespace(&mut object)?;
    let errors = binding::validate(&object);
    if !errors.is_empty() {
        let subject = Subject {
            group: "",
            resource: "Binding",
            name: &name,
        };
        return Err(Status::invalid(subject, &errors));
    }
    let attributes = asked.attributes(Operation::Create, &name, None, options.dry_run);
    api.access
        .admission
        .mutate(&mut object, &attributes)
        .await?;
    api.access.admission.validate(Some(&object), &attributes)?;
    assign(api, asked, &name, &object, options.dry_run).await?;
    let answer = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Ok(json_bytes(StatusCode::CREATED, answer.to_string()))
}

async fn assign(
    api: &Api,
    asked: &Asked<'_>,
    name: &str,
    object: &Object,
    dry_run: bool,
) -> Result<(), Status> {
    let pods = catalogue::find("", "v1", "pods").expect("the catalogue has pods");
    let conflict = |why: &str| {
        Status::conflict(
            Subject {
                group: "",
                resource: "pods/binding",
                name,
            },
            why,
        )
    };
    for _ in 0..ATTEMPTS_MAX {
        let stored = api.registry.get(pods, &asked.info.namespace, name)?;
        let mut pod = stored.object;
        if !object.uid().is_empty() && object.uid() != pod.uid() {
            return Err(conflict(&format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                object.uid(),
                pod.uid()
            )));
        }
        binding::bind(&mut pod, object, &format_time(asked.now))
            .map_err(|error| conflict(&error.to_string()))?;
        if dry_run {
            return Ok(());
        }
        let expect = Expect::At(stored.revision);
        match api
            .registry
            .put(pods, &pod, expect, Durability::Synced)
            .await
        {
            Ok(_) => return Ok(()),
            Err(Refusal::Changed) => {}
            Err(refusal) => return Err(refusal.status(pods, name)),
        }
    }
    Err(Status::modified(registry::subject(pods, name)))
}
