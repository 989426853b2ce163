//! A drive's whole state as bytes: what lies where, what is under way, wear, caches, the clock. Loaded, the
//! drive goes on as if nothing had been.
//!
//! ```text
//! "LODGER drive state\n"  19 bytes
//! form                    u32, little endian
//! bytes of the state      u64, little endian
//! CRC-32 of the state     u32, little endian
//! CRC-32 of its names     u32, little endian: of the state as MessagePack, fields by name
//! state                   postcard
//! ```
//!
//! The state has no names of fields; what was read is held against the check of their names and values, so that a
//! state of a build that knows other fields is refused and not misread. (Reading MessagePack itself takes ten times
//! the code, and a minute more to build.) The checksums find damage, not malice: load states of your own.

use crate::drives::Drive;
use crate::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8] = b"LODGER drive state\n";
const FORM: u32 = 9;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 8 + 4 + 4;

/// A state with its header.
pub(crate) fn to_bytes<T: Serialize>(state: &T) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::failed(format!("the state cannot be written: {error}"));
    let body = postcard::to_stdvec(state).map_err(|error| failed(error.to_string()))?;
    let names = names(state).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORM.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    bytes.extend_from_slice(&names.to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// What [`to_bytes`] has written.
pub(crate) fn from_bytes<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, Error> {
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        Error::input("this is no saved drive: it does not begin with \"LODGER drive state\"")
            .hint("`save` of a session writes one")
    })?;
    let (form, rest) = take(rest).map(|(form, rest)| (u32::from_le_bytes(form), rest))?;
    if form != FORM {
        let message = format!("the saved drive has form {form}, this program reads form {FORM}");
        return Err(Error::input(message).hint("save it anew with this version"));
    }
    let (length, rest) = take(rest)?;
    let (checksum, rest) = take(rest)?;
    let (saved_names, body) = take(rest)?;
    let length = u64::from_le_bytes(length);
    if length != body.len() as u64 {
        let message = format!(
            "the saved drive is cut off: {} of {length} bytes are there",
            body.len()
        );
        return Err(Error::input(message));
    }
    if crc32fast::hash(body) != u32::from_le_bytes(checksum) {
        return Err(Error::input(
            "the saved drive is damaged: its checksum does not hold",
        ));
    }
    let unfit = |error: String| {
        Error::input(format!("the saved drive does not fit this build: {error}"))
            .hint("states are read by the version that wrote them")
    };
    let state = postcard::from_bytes(body).map_err(|error| unfit(error.to_string()))?;
    match names(&state) {
        Ok(names) if names == u32::from_le_bytes(saved_names) => Ok(state),
        Ok(_) => Err(unfit("its fields are others".to_owned())),
        Err(error) => Err(unfit(error.to_string())),
    }
}

/// Check of names and values.
fn names<T: Serialize>(state: &T) -> Result<u32, rmp_serde::encode::Error> {
    let mut hashed = Hashed(crc32fast::Hasher::new());
    // What is written bit by bit is hashed in larger parts.
    let mut buffered = std::io::BufWriter::new(&mut hashed);
    rmp_serde::encode::write_named(&mut buffered, state)?;
    drop(buffered);
    Ok(hashed.0.finalize())
}

struct Hashed(crc32fast::Hasher);

impl std::io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Error> {
    let (head, rest) = bytes
        .split_first_chunk()
        .ok_or_else(|| Error::input("the saved drive is cut off in its header"))?;
    Ok((*head, rest))
}

/// The drive that a state says it is of; its text and the model that was saved must agree.
pub(crate) fn drive(name: &str, text: &str, spec: &lodger_core::DriveSpec) -> Result<Drive, Error> {
    let drive = Drive::parse(name, text, &[])?;
    match drive.spec() == spec {
        true => Ok(drive),
        false => Err(Error::input(
            "the saved drive contradicts itself: its drive file is another's",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Serialize, Deserialize)]
    struct Saved {
        superblocks: u32,
        channels: u32,
    }

    /// Two numbers, as [`Saved`], in the order of another build.
    #[derive(Debug, Serialize, Deserialize)]
    struct Turned {
        channels: u32,
        superblocks: u32,
    }

    #[test]
    fn a_state_of_other_fields_is_refused_and_not_misread() {
        let saved = Saved {
            superblocks: 7,
            channels: 2,
        };
        let bytes = to_bytes(&saved).expect("numbers");
        let loaded: Saved = from_bytes(&bytes).expect("it is the same");
        assert_eq!((loaded.superblocks, loaded.channels), (7, 2));
        let error = from_bytes::<Turned>(&bytes).expect_err("it is another");
        assert!(error.message.contains("its fields are others"), "{error:?}");
    }
}
