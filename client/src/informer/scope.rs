//! Which objects of a kind an informer holds.

use kube::Api;

use super::lean::Lean;
use crate::Client;

/// Restricts an informer to a part of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    pub fields: Option<String>,
    pub labels: Option<String>,
    /// One namespace only; all of them otherwise.
    pub namespace: Option<String>,
}

impl Filter {
    pub fn fields(selector: impl Into<String>) -> Self {
        Self {
            fields: Some(selector.into()),
            ..Self::default()
        }
    }

    pub fn labels(selector: impl Into<String>) -> Self {
        Self {
            labels: Some(selector.into()),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn in_namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }
}

/// Chooses the API to list through by the kind's scope.
pub trait ListScope<K> {
    fn api(client: Client, namespace: Option<&str>) -> Api<Lean<K>>;
}

impl<K> ListScope<K> for k8s_openapi::NamespaceResourceScope
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    fn api(client: Client, namespace: Option<&str>) -> Api<Lean<K>> {
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

impl<K> ListScope<K> for k8s_openapi::ClusterResourceScope
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
{
    fn api(client: Client, _namespace: Option<&str>) -> Api<Lean<K>> {
        Api::all(client)
    }
}
