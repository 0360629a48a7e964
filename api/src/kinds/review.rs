//! Kinds that are asked and answered and never stored: reviews and bindings. Their rows let
//! discovery, routing and authorization know them; the API server answers them itself.

use crate::kinds::plain::Plain;
use crate::kinds::row::{self, CREATE_ONLY, Names};
use crate::resource::{Resource, Scope};

const fn created(group: &'static str, scope: Scope, names: Names) -> Resource {
    let mut row = row::namespaced(group, "v1", names, &Plain);
    row.scope = scope;
    row.verbs = CREATE_ONLY;
    row
}

pub const BINDINGS: Resource = created(
    "",
    Scope::Namespaced,
    Names {
        kind: "Binding",
        plural: "bindings",
        singular: "binding",
        schema: "io.k8s.api.core.v1.Binding",
    },
);

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

pub const SELF_SUBJECT_REVIEWS: Resource = created(
    AUTHENTICATION,
    Scope::Cluster,
    Names {
        kind: "SelfSubjectReview",
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        schema: "io.k8s.api.authentication.v1.SelfSubjectReview",
    },
);

pub const TOKEN_REVIEWS: Resource = created(
    AUTHENTICATION,
    Scope::Cluster,
    Names {
        kind: "TokenReview",
        plural: "tokenreviews",
        singular: "tokenreview",
        schema: "io.k8s.api.authentication.v1.TokenReview",
    },
);

pub const LOCAL_SUBJECT_ACCESS_REVIEWS: Resource = created(
    AUTHORIZATION,
    Scope::Namespaced,
    Names {
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        singular: "localsubjectaccessreview",
        schema: "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    },
);

pub const SELF_SUBJECT_ACCESS_REVIEWS: Resource = created(
    AUTHORIZATION,
    Scope::Cluster,
    Names {
        kind: "SelfSubjectAccessReview",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        schema: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    },
);

pub const SELF_SUBJECT_RULES_REVIEWS: Resource = created(
    AUTHORIZATION,
    Scope::Cluster,
    Names {
        kind: "SelfSubjectRulesReview",
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        schema: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    },
);

pub const SUBJECT_ACCESS_REVIEWS: Resource = created(
    AUTHORIZATION,
    Scope::Cluster,
    Names {
        kind: "SubjectAccessReview",
        plural: "subjectaccessreviews",
        singular: "subjectaccessreview",
        schema: "io.k8s.api.authorization.v1.SubjectAccessReview",
    },
);
