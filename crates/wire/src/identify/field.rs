//! Fields by name.

use super::PAGE_BYTES;
use crate::layout::Place;

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// ASCII, filled up with spaces.
    Text,
    /// A name, filled up with zeros.
    Name,
    /// Bytes, given in hexadecimal; what is not given is 0.
    Bytes,
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The standard's name.
    pub name: &'static str,
    /// What stands in it.
    pub kind: Kind,
    /// First byte.
    pub offset: usize,
    /// Length, bytes.
    pub bytes: usize,
    /// What it says, with its unit.
    pub about: &'static str,
}

impl Field {
    /// Largest number that it holds; fields of more than 16 bytes are no numbers.
    #[must_use]
    pub const fn max(&self) -> u128 {
        if self.bytes >= 16 {
            u128::MAX
        } else {
            (1 << (8 * self.bytes)) - 1
        }
    }

    pub(crate) const fn place(&self) -> Place {
        Place {
            name: self.name,
            offset: self.offset,
            bytes: self.bytes,
        }
    }
}

/// Equal parts of a structure, one after the other: `PSD0` to `PSD31`, each with fields of its own.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// The standard's name, before the index.
    pub name: &'static str,
    /// How many.
    pub count: usize,
    /// First byte of the first.
    pub offset: usize,
    /// Bytes of each.
    pub bytes: usize,
    /// Their fields, with offsets from their own beginning.
    pub fields: &'static [Field],
}

/// A structure: its fields, and arrays of such.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// The standard's name.
    pub name: &'static str,
    /// Its fields, in order.
    pub fields: &'static [Field],
    /// Its arrays.
    pub arrays: &'static [Array],
}

impl Structure {
    /// Every field with its full name, arrays' too.
    pub fn all(&self) -> impl Iterator<Item = (String, Field)> + '_ {
        let plain = self
            .fields
            .iter()
            .map(|field| (field.name.to_owned(), *field));
        let parts = self.arrays.iter().flat_map(|array| {
            (0..array.count).flat_map(move |index| {
                array.fields.iter().map(move |field| {
                    let name = format!("{}{index}.{}", array.name, field.name);
                    let offset = array.offset + index * array.bytes + field.offset;
                    (name, Field { offset, ..*field })
                })
            })
        });
        plain.chain(parts)
    }

    /// A field by its full name, in upper or lower case.
    ///
    /// # Errors
    /// [`AssignError::Unknown`], with the name that is nearest.
    pub fn find(&self, name: &str) -> Result<Field, AssignError> {
        let wanted = name.to_ascii_uppercase();
        if let Some((_, field)) = self.all().find(|(known, _)| *known == wanted) {
            return Ok(field);
        }
        // A third of its letters may be wrong; of names that are longer or shorter than that, none is near.
        let near = |known: &String| {
            let most = known.len().div_ceil(3);
            let distance = || strsim::damerau_levenshtein(known, &wanted);
            (known.len().abs_diff(wanted.len()) <= most)
                .then(distance)
                .filter(|distance| *distance <= most)
        };
        let names = self.all().map(|(known, _)| known);
        let nearest = names.filter_map(|known| Some((near(&known)?, known)));
        Err(AssignError::Unknown {
            name: name.to_owned(),
            structure: self.name,
            nearest: nearest.min().map(|(_, known)| known),
        })
    }
}

/// Why a field cannot be set as said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum AssignError {
    /// It is not of the form `FIELD=VALUE`.
    #[error("an identify field is set by `FIELD=VALUE`, found `{found}`")]
    Form { found: String },
    /// There is no such field.
    #[error("`{name}` is no field of {structure}")]
    Unknown {
        name: String,
        structure: &'static str,
        nearest: Option<String>,
    },
    /// It is no number, or too large a one.
    #[error("`{name}` must be between 0 and {max}, found `{found}`")]
    Number {
        name: String,
        max: u128,
        found: String,
    },
    /// It is too long, or has characters that cannot be.
    #[error("`{name}` must be at most {bytes} printable ASCII characters, found `{found}`")]
    Text {
        name: String,
        bytes: usize,
        found: String,
    },
    /// It is too long, or not hexadecimal.
    #[error(
        "`{name}` must be at most {bytes} bytes as pairs of hexadecimal digits, found `{found}`"
    )]
    Bytes {
        name: String,
        bytes: usize,
        found: String,
    },
}

impl AssignError {
    /// What to do, if that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            AssignError::Form { .. } => Some("for example `HMPRE=16384`".to_owned()),
            AssignError::Unknown { nearest, .. } => {
                let nearest = nearest.as_ref()?;
                Some(format!("did you mean `{nearest}`?"))
            }
            AssignError::Number { .. } => {
                Some("numbers are decimal, or `0x` and hexadecimal".into())
            }
            AssignError::Text { .. } | AssignError::Bytes { .. } => None,
        }
    }
}

/// Whether the fields follow each other, and arrays after them, within a page.
pub(super) const fn is_in_order(structure: &Structure) -> bool {
    let (mut index, mut end) = (0, 0);
    while index < structure.fields.len() {
        let place = structure.fields[index].place();
        if place.offset < end {
            return false;
        }
        end = place.offset + place.bytes;
        index += 1;
    }
    end <= PAGE_BYTES
}

/// Defines fields as constants, and the table of them all: `NAME: Kind @ offset, bytes, "about";`.
macro_rules! fields {
    ($($name:ident: $kind:ident @ $offset:literal, $bytes:literal, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $name: $crate::identify::Field = $crate::identify::Field {
                name: stringify!($name),
                kind: $crate::identify::Kind::$kind,
                offset: $offset,
                bytes: $bytes,
                about: $about,
            };
        )*

        /// All of them, in order.
        pub const ALL: &[$crate::identify::Field] = &[$($name),*];
    };
}
pub(super) use fields;
