//! The plugins by upstream's names, in upstream's order, with the operations each looks at.

use super::Operation;
use Operation::{Connect, Create, Delete, Update};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    TaintNodesByCondition,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    PodTopologyLabels,
    PodResizeValidator,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
}

impl Plugin {
    pub const ALL: &[Self] = &[
        Self::NamespaceLifecycle,
        Self::LimitRanger,
        Self::ServiceAccount,
        Self::NodeRestriction,
        Self::TaintNodesByCondition,
        Self::PodSecurity,
        Self::Priority,
        Self::DefaultTolerationSeconds,
        Self::DefaultStorageClass,
        Self::StorageObjectInUseProtection,
        Self::PersistentVolumeClaimResize,
        Self::RuntimeClass,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::DefaultIngressClass,
        Self::PodTopologyLabels,
        Self::PodResizeValidator,
        Self::MutatingAdmissionPolicy,
        Self::MutatingAdmissionWebhook,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionWebhook,
        Self::ResourceQuota,
    ];

    /// Those that may change an object. Some of them refuse as well, before validation.
    pub const MUTATING: &[Self] = &[
        Self::NamespaceLifecycle,
        Self::LimitRanger,
        Self::ServiceAccount,
        Self::NodeRestriction,
        Self::TaintNodesByCondition,
        Self::Priority,
        Self::DefaultTolerationSeconds,
        Self::DefaultStorageClass,
        Self::StorageObjectInUseProtection,
        Self::RuntimeClass,
        Self::DefaultIngressClass,
        Self::PodTopologyLabels,
        Self::MutatingAdmissionPolicy,
        Self::MutatingAdmissionWebhook,
    ];

    /// Those that look at the object that is to be stored. Quotas come after them: a charge is held
    /// until the object is written.
    pub const VALIDATING: &[Self] = &[
        Self::LimitRanger,
        Self::ServiceAccount,
        Self::PodSecurity,
        Self::Priority,
        Self::PersistentVolumeClaimResize,
        Self::RuntimeClass,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateSubjectRestriction,
        Self::PodResizeValidator,
        Self::ValidatingAdmissionPolicy,
        Self::ValidatingAdmissionWebhook,
    ];

    /// Whether the plugin is asked at all, as upstream's handlers register.
    pub fn handles(self, operation: Operation) -> bool {
        let handled: &[Operation] = match self {
            Self::NamespaceLifecycle | Self::NodeRestriction => &[Create, Update, Delete],
            Self::LimitRanger
            | Self::ServiceAccount
            | Self::PodSecurity
            | Self::Priority
            | Self::DefaultTolerationSeconds
            | Self::ResourceQuota => &[Create, Update],
            Self::PersistentVolumeClaimResize
            | Self::CertificateApproval
            | Self::CertificateSigning
            | Self::PodResizeValidator => &[Update],
            Self::TaintNodesByCondition
            | Self::DefaultStorageClass
            | Self::StorageObjectInUseProtection
            | Self::RuntimeClass
            | Self::CertificateSubjectRestriction
            | Self::DefaultIngressClass
            | Self::PodTopologyLabels => &[Create],
            Self::MutatingAdmissionPolicy => &[Create, Update, Connect],
            Self::MutatingAdmissionWebhook
            | Self::ValidatingAdmissionPolicy
            | Self::ValidatingAdmissionWebhook => &[Create, Update, Delete, Connect],
        };
        handled.contains(&operation)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NamespaceLifecycle => "NamespaceLifecycle",
            Self::LimitRanger => "LimitRanger",
            Self::ServiceAccount => "ServiceAccount",
            Self::NodeRestriction => "NodeRestriction",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::PodSecurity => "PodSecurity",
            Self::Priority => "Priority",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Self::DefaultStorageClass => "DefaultStorageClass",
            Self::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Self::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Self::RuntimeClass => "RuntimeClass",
            Self::CertificateApproval => "CertificateApproval",
            Self::CertificateSigning => "CertificateSigning",
            Self::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Self::DefaultIngressClass => "DefaultIngressClass",
            Self::PodTopologyLabels => "PodTopologyLabels",
            Self::PodResizeValidator => "PodResizeValidator",
            Self::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Self::MutatingAdmissionWebhook => "MutatingAdmissionWebhook",
            Self::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Self::ValidatingAdmissionWebhook => "ValidatingAdmissionWebhook",
            Self::ResourceQuota => "ResourceQuota",
        }
    }
}
