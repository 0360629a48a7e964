//! The subresource `binding`, and the resource `bindings`: puts a pod on a node.

use super::act;
use super::asked::Asked;
use super::decode::Expected;
use crate::Api;
use crate::registry::{self, Refusal};
use crate::tunnel::Body;
use crate::verbs::write::ATTEMPTS_MAX;
use coracle_api::catalogue;
use coracle_api::field::FieldError;
use coracle_api::kinds::pod::binding;
use coracle_api::object::Object;
use coracle_api::resource::Durability;
use coracle_api::status::{Status, Subject, aggregate};
use coracle_api::timestamp::format_time;
use coracle_store::Expect;
use http::Response;

/// The kind of the resource `bindings`, which is never stored.
pub const KIND: &str = "Binding";
pub const SUBRESOURCE: &str = "binding";

pub async fn bind(
    api: &Api,
    asked: &Asked<'_>,
    request_body: Body,
) -> Result<Response<Body>, Status> {
    let expected = Expected {
        api_version: "v1".to_owned(),
        kind: KIND,
        type_name: "io.k8s.api.core.v1.Binding".to_owned(),
        custom: None,
    };
    let mut act = act::read(asked, &expected, request_body).await?;
    let errors = binding::validate(&act.body);
    if act.name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    if !errors.is_empty() {
        return Err(malformed(&errors));
    }
    let dry_run = act.options.dry_run;
    act::admit(api, asked, &mut act, dry_run).await?;
    assign(api, asked, &act.name, &act.body, dry_run).await?;
    Ok(act::done())
}

/// Upstream answers a malformed binding with a bare error.
fn malformed(errors: &[FieldError]) -> Status {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Status::failed(aggregate(&texts))
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
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{name}, \
                 ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
                 precondition: {}, UID in object meta: {}",
                asked.info.namespace,
                object.uid(),
                pod.uid()
            );
            return Err(Status::conflict(registry::subject(pods, name), &why));
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
