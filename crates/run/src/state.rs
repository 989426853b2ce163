//! A drive's whole state as bytes: what lies where, what is under way, wear, caches, the clock. Loaded, the
//! drive goes on as if nothing had been.
//!
//! ```text
//! "LODGER drive state\n"  19 bytes
//! form                    u32, little endian, 1
//! bytes of the state      u64, little endian
//! CRC-32 of the state     u32, little endian
//! state                   MessagePack, fields by name
//! ```
//!
//! Fields go by name, so that a state of a build that knows other fields is refused and not misread. The
//! checksum finds damage, not malice: load states of your own.

use crate::drives::Drive;
use crate::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8] = b"LODGER drive state\n";
const FORM: u32 = 1;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 8 + 4;

/// A state with its header.
pub(crate) fn to_bytes<T: Serialize>(state: &T) -> Result<Vec<u8>, Error> {
    let body = rmp_serde::to_vec_named(state)
        .map_err(|error| Error::failed(format!("the state cannot be written: {error}")))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORM.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// What [`to_bytes`] has written.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
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
    let (checksum, body) = take(rest)?;
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
    rmp_serde::from_slice(body).map_err(|error| {
        Error::input(format!("the saved drive does not fit this build: {error}"))
            .hint("states are read by the version that wrote them")
    })
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
