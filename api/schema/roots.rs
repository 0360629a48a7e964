//! The kinds the schema is built from: every kind of k8s-openapi, and bodies that are no kind.
//!
//! Types they refer to follow by themselves.

use super::gather::Gather;
use k8s_openapi::api::admissionregistration as admission;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as aggregation;

/// Adds all roots to `gather`.
pub fn add(gather: &mut Gather) {
    listed(gather);
    single(gather);
    let metrics = include_str!("../facts/metrics.json");
    gather.foreign("metrics.k8s.io", "v1beta1", metrics);
}

/// Kinds that have a list.
#[expect(clippy::too_many_lines, reason = "one list")]
fn listed(gather: &mut Gather) {
    gather.listed::<admission::v1::MutatingAdmissionPolicy>();
    gather.listed::<admission::v1::MutatingAdmissionPolicyBinding>();
    gather.listed::<admission::v1::MutatingWebhookConfiguration>();
    gather.listed::<admission::v1::ValidatingAdmissionPolicy>();
    gather.listed::<admission::v1::ValidatingAdmissionPolicyBinding>();
    gather.listed::<admission::v1::ValidatingWebhookConfiguration>();
    gather.listed::<admission::v1alpha1::MutatingAdmissionPolicy>();
    gather.listed::<admission::v1alpha1::MutatingAdmissionPolicyBinding>();
    gather.listed::<admission::v1beta1::MutatingAdmissionPolicy>();
    gather.listed::<admission::v1beta1::MutatingAdmissionPolicyBinding>();
    gather.listed::<k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion>();
    gather.listed::<k8s_openapi::api::apps::v1::ControllerRevision>();
    gather.listed::<k8s_openapi::api::apps::v1::DaemonSet>();
    gather.listed::<k8s_openapi::api::apps::v1::Deployment>();
    gather.listed::<k8s_openapi::api::apps::v1::ReplicaSet>();
    gather.listed::<k8s_openapi::api::apps::v1::StatefulSet>();
    gather.listed::<k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler>();
    gather.listed::<k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler>();
    gather.listed::<k8s_openapi::api::batch::v1::CronJob>();
    gather.listed::<k8s_openapi::api::batch::v1::Job>();
    gather.listed::<k8s_openapi::api::certificates::v1::CertificateSigningRequest>();
    gather.listed::<k8s_openapi::api::certificates::v1alpha1::ClusterTrustBundle>();
    gather.listed::<k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle>();
    gather.listed::<k8s_openapi::api::certificates::v1beta1::PodCertificateRequest>();
    gather.listed::<k8s_openapi::api::coordination::v1::Lease>();
    gather.listed::<k8s_openapi::api::coordination::v1alpha2::LeaseCandidate>();
    gather.listed::<k8s_openapi::api::coordination::v1beta1::LeaseCandidate>();
    gather.listed::<k8s_openapi::api::core::v1::ComponentStatus>();
    gather.listed::<k8s_openapi::api::core::v1::ConfigMap>();
    gather.listed::<k8s_openapi::api::core::v1::Endpoints>();
    gather.listed::<k8s_openapi::api::core::v1::Event>();
    gather.listed::<k8s_openapi::api::core::v1::LimitRange>();
    gather.listed::<k8s_openapi::api::core::v1::Namespace>();
    gather.listed::<k8s_openapi::api::core::v1::Node>();
    gather.listed::<k8s_openapi::api::core::v1::PersistentVolume>();
    gather.listed::<k8s_openapi::api::core::v1::PersistentVolumeClaim>();
    gather.listed::<k8s_openapi::api::core::v1::Pod>();
    gather.listed::<k8s_openapi::api::core::v1::PodTemplate>();
    gather.listed::<k8s_openapi::api::core::v1::ReplicationController>();
    gather.listed::<k8s_openapi::api::core::v1::ResourceQuota>();
    gather.listed::<k8s_openapi::api::core::v1::Secret>();
    gather.listed::<k8s_openapi::api::core::v1::Service>();
    gather.listed::<k8s_openapi::api::core::v1::ServiceAccount>();
    gather.listed::<k8s_openapi::api::discovery::v1::EndpointSlice>();
    gather.listed::<k8s_openapi::api::events::v1::Event>();
    gather.listed::<k8s_openapi::api::flowcontrol::v1::FlowSchema>();
    gather.listed::<k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration>();
    gather.listed::<k8s_openapi::api::networking::v1::IPAddress>();
    gather.listed::<k8s_openapi::api::networking::v1::Ingress>();
    gather.listed::<k8s_openapi::api::networking::v1::IngressClass>();
    gather.listed::<k8s_openapi::api::networking::v1::NetworkPolicy>();
    gather.listed::<k8s_openapi::api::networking::v1::ServiceCIDR>();
    gather.listed::<k8s_openapi::api::networking::v1beta1::IPAddress>();
    gather.listed::<k8s_openapi::api::networking::v1beta1::ServiceCIDR>();
    gather.listed::<k8s_openapi::api::node::v1::RuntimeClass>();
    gather.listed::<k8s_openapi::api::policy::v1::PodDisruptionBudget>();
    gather.listed::<k8s_openapi::api::rbac::v1::ClusterRole>();
    gather.listed::<k8s_openapi::api::rbac::v1::ClusterRoleBinding>();
    gather.listed::<k8s_openapi::api::rbac::v1::Role>();
    gather.listed::<k8s_openapi::api::rbac::v1::RoleBinding>();
    gather.listed::<k8s_openapi::api::resource::v1::DeviceClass>();
    gather.listed::<k8s_openapi::api::resource::v1::ResourceClaim>();
    gather.listed::<k8s_openapi::api::resource::v1::ResourceClaimTemplate>();
    gather.listed::<k8s_openapi::api::resource::v1::ResourceSlice>();
    gather.listed::<k8s_openapi::api::resource::v1alpha3::DeviceTaintRule>();
    gather.listed::<k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest>();
    gather.listed::<k8s_openapi::api::resource::v1beta1::DeviceClass>();
    gather.listed::<k8s_openapi::api::resource::v1beta1::ResourceClaim>();
    gather.listed::<k8s_openapi::api::resource::v1beta1::ResourceClaimTemplate>();
    gather.listed::<k8s_openapi::api::resource::v1beta1::ResourceSlice>();
    gather.listed::<k8s_openapi::api::resource::v1beta2::DeviceClass>();
    gather.listed::<k8s_openapi::api::resource::v1beta2::DeviceTaintRule>();
    gather.listed::<k8s_openapi::api::resource::v1beta2::ResourceClaim>();
    gather.listed::<k8s_openapi::api::resource::v1beta2::ResourceClaimTemplate>();
    gather.listed::<k8s_openapi::api::resource::v1beta2::ResourceSlice>();
    gather.listed::<k8s_openapi::api::scheduling::v1::PriorityClass>();
    gather.listed::<k8s_openapi::api::scheduling::v1alpha2::PodGroup>();
    gather.listed::<k8s_openapi::api::scheduling::v1alpha2::Workload>();
    gather.listed::<k8s_openapi::api::storage::v1::CSIDriver>();
    gather.listed::<k8s_openapi::api::storage::v1::CSINode>();
    gather.listed::<k8s_openapi::api::storage::v1::CSIStorageCapacity>();
    gather.listed::<k8s_openapi::api::storage::v1::StorageClass>();
    gather.listed::<k8s_openapi::api::storage::v1::VolumeAttachment>();
    gather.listed::<k8s_openapi::api::storage::v1::VolumeAttributesClass>();
    gather.listed::<k8s_openapi::api::storage::v1beta1::VolumeAttributesClass>();
    gather.listed::<k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration>();
    gather.listed::<extensions::CustomResourceDefinition>();
    gather.listed::<aggregation::APIService>();
}

/// Kinds without a list, and bodies that are no resource.
fn single(gather: &mut Gather) {
    gather.kind::<k8s_openapi::api::authentication::v1::SelfSubjectReview>();
    gather.kind::<k8s_openapi::api::authentication::v1::TokenRequest>();
    gather.kind::<k8s_openapi::api::authentication::v1::TokenReview>();
    gather.kind::<k8s_openapi::api::authorization::v1::LocalSubjectAccessReview>();
    gather.kind::<k8s_openapi::api::authorization::v1::SelfSubjectAccessReview>();
    gather.kind::<k8s_openapi::api::authorization::v1::SelfSubjectRulesReview>();
    gather.kind::<k8s_openapi::api::authorization::v1::SubjectAccessReview>();
    gather.kind::<k8s_openapi::api::autoscaling::v1::Scale>();
    gather.kind::<k8s_openapi::api::core::v1::Binding>();
    gather.kind::<k8s_openapi::api::policy::v1::Eviction>();
    gather.kind::<meta::APIGroup>();
    gather.kind::<meta::APIGroupList>();
    gather.kind::<meta::APIResourceList>();
    gather.kind::<meta::APIVersions>();
    gather.kind::<meta::Status>();
    gather.body::<k8s_openapi::apimachinery::pkg::version::Info>();
    gather.body::<meta::DeleteOptions>();
    gather.body::<meta::WatchEvent<RawExtension>>();
}
