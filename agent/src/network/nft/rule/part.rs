//! A part of the key that a rule looks up: of the packet, a constant, by chance, or the target.

use super::super::datum::{Datum, Family, Kind};
use super::super::field::Field;
use super::super::wire::Writer;
use super::{TARGET, encode};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Part {
    Field(Field),
    /// The same for all packets of the rule: which list of several in one map is meant.
    Constant(Datum),
    /// A number of `offset..offset + modulus`, another one for each packet. Kind `Number`.
    Random {
        modulus: u32,
        offset: u32,
    },
    /// What `Rule::find_target` found before.
    TargetAddress(Family),
    TargetPort(Family),
}

impl From<Field> for Part {
    fn from(field: Field) -> Self {
        Self::Field(field)
    }
}

impl From<&Field> for Part {
    fn from(field: &Field) -> Self {
        Self::Field(*field)
    }
}

impl Part {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Field(field) => field.kind(),
            Self::Constant(value) => value.kind(),
            Self::Random { .. } => Kind::Number,
            Self::TargetAddress(family) => family.kind(),
            Self::TargetPort(_) => Kind::Port,
        }
    }

    pub(super) fn needs(&self) -> Option<Family> {
        match self {
            Self::Field(field) => field.needs(),
            _ => None,
        }
    }

    pub(super) fn load(&self, writer: &mut Writer, register: u32) {
        match self {
            Self::Field(field) => field.load(writer, register),
            Self::Constant(value) => encode::immediate(writer, register, &value.bytes()),
            Self::Random { modulus, offset } => {
                encode::random(writer, register, *modulus, *offset);
            }
            Self::TargetAddress(family) => {
                encode::copy(writer, TARGET, register, family.kind().width());
            }
            Self::TargetPort(family) => {
                let port = TARGET + family.kind().padded_width() / 4;
                encode::copy(writer, port, register, Kind::Port.width());
            }
        }
    }
}
