//! A structure's bytes.

use super::PAGE_BYTES;
use super::field::{AssignError, Field, Kind, Structure};

/// A structure with its fields' names.
#[derive(Clone, Debug)]
pub struct Page {
    structure: &'static Structure,
    bytes: Box<[u8; PAGE_BYTES]>,
}

impl Page {
    /// One that says nothing: all 0.
    #[must_use]
    pub fn new(structure: &'static Structure) -> Self {
        let bytes = Box::new([0; PAGE_BYTES]);
        Page { structure, bytes }
    }

    /// One that a drive has sent.
    #[must_use]
    pub fn from_bytes(structure: &'static Structure, bytes: &[u8; PAGE_BYTES]) -> Self {
        let bytes = Box::new(*bytes);
        Page { structure, bytes }
    }

    /// What is sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8; PAGE_BYTES] {
        &self.bytes
    }

    fn part(&self, field: Field) -> &[u8] {
        &self.bytes[field.offset..field.offset + field.bytes]
    }

    fn part_mut(&mut self, field: Field) -> &mut [u8] {
        &mut self.bytes[field.offset..field.offset + field.bytes]
    }

    /// A number.
    ///
    /// # Panics
    /// If the field is longer than a number.
    #[must_use]
    pub fn number(&self, field: Field) -> u128 {
        let mut bytes = [0; 16];
        bytes[..field.bytes].copy_from_slice(self.part(field));
        u128::from_le_bytes(bytes)
    }

    /// Sets a number.
    ///
    /// # Panics
    /// If it does not fit: what comes from users goes through [`Page::assign`].
    pub fn set(&mut self, field: Field, number: impl Into<u128>) -> &mut Self {
        let number = number.into();
        assert!(number <= field.max(), "`{}` = {number}", field.name);
        let bytes = number.to_le_bytes();
        self.part_mut(field).copy_from_slice(&bytes[..field.bytes]);
        self
    }

    /// Sets bytes, from the field's first on; the rest is 0.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn set_bytes(&mut self, field: Field, bytes: &[u8]) -> &mut Self {
        let part = self.part_mut(field);
        part.fill(0);
        part[..bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Sets a text or a name. What does not fit is cut off, what is not printable ASCII becomes `?`.
    pub fn set_text(&mut self, field: Field, text: &str) -> &mut Self {
        let fill = if field.kind == Kind::Text { b' ' } else { 0 };
        let part = self.part_mut(field);
        part.fill(fill);
        for (to, from) in part.iter_mut().zip(text.chars()) {
            *to = u8::try_from(from)
                .ok()
                .filter(|byte| (0x20..0x7f).contains(byte))
                .unwrap_or(b'?');
        }
        self
    }

    /// Sets a field by its name, as a user wrote it: `FIELD=VALUE`.
    ///
    /// # Errors
    /// If there is no such field, or the value cannot be its.
    pub fn assign(&mut self, assignment: &str) -> Result<(), AssignError> {
        let Some((name, value)) = assignment.split_once('=') else {
            let found = assignment.to_owned();
            return Err(AssignError::Form { found });
        };
        let (name, value) = (name.trim(), value.trim());
        let field = self.structure.find(name)?;
        let (name, found) = (name.to_owned(), value.to_owned());
        let bytes = field.bytes;
        match field.kind {
            Kind::Number => {
                let max = field.max();
                let number = parsed(value).filter(|number| *number <= max);
                let number = number.ok_or(AssignError::Number { name, max, found })?;
                self.set(field, number);
            }
            Kind::Text | Kind::Name => {
                let is_good = value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
                if !is_good || value.len() > bytes {
                    return Err(AssignError::Text { name, bytes, found });
                }
                self.set_text(field, value);
            }
            Kind::Bytes => {
                let given = hex(value).filter(|given| given.len() <= bytes);
                let given = given.ok_or(AssignError::Bytes { name, bytes, found })?;
                self.set_bytes(field, &given);
            }
        }
        Ok(())
    }

    /// What is set, as [`Page::assign`] takes it: fields that are not all 0.
    pub fn assignments(&self) -> impl Iterator<Item = String> + '_ {
        let said = |(_, field): &(String, Field)| self.part(*field).iter().any(|byte| *byte != 0);
        self.structure.all().filter(said).map(|(name, field)| {
            let part = self.part(field);
            let text = || String::from_utf8_lossy(part).into_owned();
            match field.kind {
                Kind::Number => format!("{name}={}", self.number(field)),
                Kind::Text => format!("{name}={}", text().trim_end_matches(' ')),
                Kind::Name => format!("{name}={}", text().trim_end_matches('\0')),
                Kind::Bytes => {
                    let end = part
                        .iter()
                        .rposition(|byte| *byte != 0)
                        .map_or(0, |last| last + 1);
                    let digits = part[..end].iter().map(|byte| format!("{byte:02x}"));
                    format!("{name}={}", digits.collect::<String>())
                }
            }
        })
    }
}

fn parsed(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` takes signs.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u128::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_plain)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8));
    let digits = digits.collect::<Option<Vec<u8>>>()?;
    let (pairs, []) = digits.as_chunks() else {
        return None;
    };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
