//! The four kinds of role-based access control.

mod binding;
mod role;

use crate::kinds::row::{self, Names};
use crate::resource::Resource;

pub const GROUP: &str = "rbac.authorization.k8s.io";

pub const CLUSTER_ROLE_BINDINGS: Resource = row::cluster(
    GROUP,
    "v1",
    Names {
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        singular: "clusterrolebinding",
        schema: "io.k8s.api.rbac.v1.ClusterRoleBinding",
    },
    &binding::Binding { namespaced: false },
);

pub const CLUSTER_ROLES: Resource = row::cluster(
    GROUP,
    "v1",
    Names {
        kind: "ClusterRole",
        plural: "clusterroles",
        singular: "clusterrole",
        schema: "io.k8s.api.rbac.v1.ClusterRole",
    },
    &role::Role { namespaced: false },
);

pub const ROLE_BINDINGS: Resource = row::namespaced(
    GROUP,
    "v1",
    Names {
        kind: "RoleBinding",
        plural: "rolebindings",
        singular: "rolebinding",
        schema: "io.k8s.api.rbac.v1.RoleBinding",
    },
    &binding::Binding { namespaced: true },
);

pub const ROLES: Resource = row::namespaced(
    GROUP,
    "v1",
    Names {
        kind: "Role",
        plural: "roles",
        singular: "role",
        schema: "io.k8s.api.rbac.v1.Role",
    },
    &role::Role { namespaced: true },
);

#[cfg(test)]
mod tests;
