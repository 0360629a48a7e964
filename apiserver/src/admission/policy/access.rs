//! What expressions may ask of the authorizer, for the user of the request or for a service account.

use crate::admission::Attributes;
use crate::authenticate::User;
use crate::authorize::Authorizer;
use crate::request_info::RequestInfo;
use coracle_api::cel::evaluate::{Access, Question, Verdict};

#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub authorizer: &'a Authorizer,
    pub asked: &'a Attributes<'a>,
}

impl Access for Asker<'_> {
    fn decide(&self, question: &Question, verb: &str) -> Verdict {
        let account;
        let user = match &question.account {
            None => self.asked.user,
            Some((namespace, name)) => {
                account = service_account(namespace, name);
                &account
            }
        };
        let decision = self.authorizer.authorize(user, &info(question, verb));
        Verdict {
            is_allowed: decision.is_allowed(),
            reason: decision.reason().to_owned(),
            error: None,
        }
    }

    fn request_resource(&self) -> Question {
        let asked = self.asked;
        Question {
            group: asked.resource.group.to_owned(),
            resource: asked.resource.plural.to_owned(),
            subresource: asked.subresource.to_owned(),
            namespace: asked.settled_namespace().to_owned(),
            name: asked.name.to_owned(),
            ..Question::default()
        }
    }
}

fn service_account(namespace: &str, name: &str) -> User {
    let mut user = User::named(&format!("system:serviceaccount:{namespace}:{name}"));
    user.add_authenticated();
    user
}

fn info(question: &Question, verb: &str) -> RequestInfo {
    let mut info = RequestInfo {
        verb: verb.to_owned(),
        ..RequestInfo::default()
    };
    if let Some(path) = &question.path {
        info.path.clone_from(path);
        return info;
    }
    RequestInfo {
        version: "*".to_owned(),
        group: question.group.clone(),
        resource: question.resource.clone(),
        subresource: question.subresource.clone(),
        namespace: question.namespace.clone(),
        name: question.name.clone(),
        field_selector: question.field_selector.clone(),
        label_selector: question.label_selector.clone(),
        is_resource_request: true,
        ..info
    }
}
