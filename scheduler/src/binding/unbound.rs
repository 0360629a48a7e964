//! Why a pod was not bound, in upstream's words.

use crate::framework::StepError;
use crate::laps::Stage;

/// A binding that ended before its pod was bound.
#[derive(Debug, thiserror::Error)]
pub enum Unbound {
    /// Refused where the node still comes into question like any other.
    #[error("0/1 nodes are available: 1 {0}.")]
    Unfit(String),
    /// Refused later.
    #[error("{0}")]
    Refused(String),
    #[error("waiting on permit for pod")]
    NotPermitted {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("running {step} plugin {plugin:?}")]
    Failed {
        step: &'static str,
        plugin: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{0}")]
    CalledOff(&'static str),
}

impl Unbound {
    pub fn at(step: Stage, error: StepError) -> Self {
        match error {
            StepError::Refused { why, .. } if matches!(step, Stage::Reserve | Stage::Permit) => {
                Self::Unfit(why)
            }
            StepError::Refused { why, .. } => Self::Refused(why),
            // Permit itself cannot fail, only the wait for it.
            StepError::Failed { source, .. } if step == Stage::Permit => {
                Self::NotPermitted { source }
            }
            StepError::Failed { plugin, source } => Self::Failed {
                step: step.name(),
                plugin,
                source,
            },
        }
    }

    /// All of it, as events tell it.
    pub fn told(&self) -> String {
        chain(self)
    }

    /// A plugin said no; otherwise something went wrong.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Unfit(_) | Self::Refused(_))
    }
}

/// An error with its sources; a refusal in the server's own words, since kube prints the whole status.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let refusal = match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => Some(&status.message),
            _ => None,
        };
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(refusal.unwrap_or(&error.to_string()));
        // What lies below a refusal is the same in other words.
        next = error.source().filter(|_| refusal.is_none());
    }
    text
}

#[cfg(test)]
mod tests;
