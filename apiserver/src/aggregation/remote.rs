//! One APIService that a Service answers for.

use crate::fetch;
use crate::pki::authority::Issued;
use crate::pki::front_proxy::FrontProxy;
use crate::proxy;
use crate::webhook::Service;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::kinds::metrics;
use coracle_api::object::Object;
use coracle_api::{catalogue, json};
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::ClientConfig as Tls;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Debug)]
pub struct Remote {
    /// `VERSION.GROUP`.
    pub object: String,
    pub group: String,
    pub version: String,
    pub group_priority: i64,
    pub version_priority: i64,
    pub service: Service,
    /// What its condition says.
    pub is_available: bool,
    spec: Value,
    /// Shared by those of the same object.
    known: Arc<Known>,
}

/// What is known of a server beside its object.
#[derive(Debug, Default)]
struct Known {
    told: Mutex<Told>,
    tls: Mutex<Option<(Arc<Issued>, Arc<Tls>)>>,
}

/// What a server said last.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The APIResourceList.
    pub resources: Option<Value>,
    /// Where its OpenAPI document is, if it has one of the third version.
    pub schema: Option<String>,
    pub schema_asked: Option<Instant>,
    pub checked: Option<Instant>,
}

impl Remote {
    /// `None` for what this server answers itself. What `before` told is kept.
    pub fn of(object: &Object, before: Option<&Self>) -> Option<Self> {
        let spec = object.get(&["spec"])?;
        let service = json::some(spec, "service")?;
        let [group, version] = ["group", "version"].map(|name| json::text(spec, name));
        if group.is_empty() || is_own(group, version) {
            return None;
        }
        let known = match before {
            Some(before) if before.spec == *spec => Arc::clone(&before.known),
            Some(before) => Arc::new(Known::after(&before.known)),
            None => Arc::default(),
        };
        Some(Self {
            object: object.name().to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority: json::int(spec, "groupPriorityMinimum").unwrap_or(0),
            version_priority: json::int(spec, "versionPriority").unwrap_or(0),
            service: Service {
                namespace: json::text(service, "namespace").to_owned(),
                name: json::text(service, "name").to_owned(),
                port: u16::try_from(json::int(service, "port")?).ok()?,
            },
            is_available: super::check::is_available(object),
            spec: spec.clone(),
            known,
        })
    }

    pub fn group_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    pub fn told(&self) -> Told {
        self.known.told.lock().clone()
    }

    pub fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.known.told.lock());
    }

    fn host(&self) -> String {
        format!("{}.{}.svc", self.service.name, self.service.namespace)
    }

    pub fn authority(&self) -> String {
        format!("{}:{}", self.host(), self.service.port)
    }

    /// The name that its certificate must have.
    pub fn name(&self) -> Result<ServerName<'static>, String> {
        let host = self.host();
        ServerName::try_from(host.clone()).map_err(|_| format!("{host:?} is no name of a server"))
    }

    /// Trust in the server, and the certificate that it shall know this one by.
    pub fn tls(&self, front_proxy: &FrontProxy, now: Timestamp) -> Result<Arc<Tls>, String> {
        let identity = front_proxy
            .identity(now)
            .map_err(|error| error.to_string())?;
        let mut kept = self.known.tls.lock();
        if let Some((of, tls)) = &*kept
            && Arc::ptr_eq(of, &identity)
        {
            return Ok(Arc::clone(tls));
        }
        let tls = self.new_tls(&identity)?;
        *kept = Some((identity, Arc::clone(&tls)));
        Ok(tls)
    }

    fn new_tls(&self, identity: &Issued) -> Result<Arc<Tls>, String> {
        let unusable =
            |why: &dyn std::fmt::Display| format!("unable to load root certificates: {why}");
        let verifier = if json::flag(&self.spec, "insecureSkipTLSVerify") {
            proxy::anybody()
        } else {
            let bundle = json::text(&self.spec, "caBundle");
            let bundle = STANDARD.decode(bundle).map_err(|error| unusable(&error))?;
            let bundle = String::from_utf8(bundle).map_err(|error| unusable(&error))?;
            let authorities = Some(bundle.as_str()).filter(|bundle| !bundle.is_empty());
            fetch::verifier(authorities).map_err(|error| unusable(&error))?
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivatePkcs8KeyDer::from(identity.key_der.clone());
        let tls = Tls::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions of TLS")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![identity.certificate.clone()], key.into());
        tls.map(Arc::new).map_err(|error| error.to_string())
    }
}

impl Known {
    /// Of an object whose spec has changed: the resources are those that it had.
    fn after(before: &Self) -> Self {
        let resources = before.told.lock().resources.clone();
        let told = Told {
            resources,
            ..Told::default()
        };
        Self {
            told: Mutex::new(told),
            ..Self::default()
        }
    }
}

/// What this server has is nobody else's, so that it can always be mended. Only metrics are there to
/// be left to others.
fn is_own(group: &str, version: &str) -> bool {
    group != metrics::GROUP
        && catalogue::all()
            .iter()
            .any(|row| (row.group, row.version) == (group, version))
}
