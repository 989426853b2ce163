//! Structures of Identify that are lists.

use super::PAGE_BYTES;
use crate::ids::{ControllerId, NamespaceId};
use crate::layout::Wire;
use crate::status::Status;

/// Namespaces with identifiers above `after`, in rising order, 1024 at most (CNS 02h, 07h, 10h; Base 2.0
/// §5.17.2.2). `namespaces` is in rising order.
///
/// # Errors
/// [`Status::INVALID_NAMESPACE`] if no identifier can be above.
pub fn namespaces(
    namespaces: impl IntoIterator<Item = NamespaceId>,
    after: NamespaceId,
) -> Result<[u8; PAGE_BYTES], Status> {
    if after.0 >= 0xffff_fffe {
        return Err(Status::INVALID_NAMESPACE);
    }
    let mut page = [0; PAGE_BYTES];
    let above = namespaces
        .into_iter()
        .filter(|namespace| *namespace > after);
    for (to, namespace) in page.chunks_exact_mut(4).zip(above) {
        namespace.0.put(to);
    }
    Ok(page)
}

/// Controllers with identifiers from `from` on, in rising order, 2047 at most (CNS 12h, 13h; Base 2.0 §4.4.1).
/// `controllers` is in rising order.
#[must_use]
pub fn controllers(
    controllers: impl IntoIterator<Item = ControllerId>,
    from: ControllerId,
) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    let (count, entries) = page.split_at_mut(2);
    let mut listed = 0u16;
    let wanted = controllers
        .into_iter()
        .filter(|controller| *controller >= from);
    for (to, controller) in entries.chunks_exact_mut(2).zip(wanted) {
        controller.0.put(to);
        listed += 1;
    }
    listed.put(count);
    page
}

/// The controllers that a host lists (Namespace Attachment; Base 2.0 §4.4.1).
///
/// # Errors
/// [`Status::CONTROLLER_LIST_INVALID`] if there are none, more than fit, or they are not in rising order.
pub fn listed_controllers(
    list: &[u8; PAGE_BYTES],
) -> Result<impl Iterator<Item = ControllerId> + '_, Status> {
    let (count, entries) = list.split_at(2);
    let count = usize::from(u16::get(count));
    let entries = entries
        .get(..2 * count)
        .filter(|entries| !entries.is_empty());
    let entries = entries.ok_or(Status::CONTROLLER_LIST_INVALID)?;
    let ids = move || entries.chunks_exact(2).map(u16::get);
    match ids().zip(ids().skip(1)).all(|(one, next)| one < next) {
        true => Ok(ids().map(ControllerId)),
        false => Err(Status::CONTROLLER_LIST_INVALID),
    }
}

/// What a namespace is known by, over all drives and times (CNS 03h; Base 2.0 §5.17.2.3). At least one of the
/// first three is to be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceName {
    /// IEEE extended unique identifier.
    pub eui64: Option<[u8; 8]>,
    /// Namespace globally unique identifier.
    pub nguid: Option<[u8; 16]>,
    /// Universally unique identifier (RFC 4122), in the order in which it is written.
    pub uuid: Option<[u8; 16]>,
}

impl NamespaceName {
    /// The list of descriptors: the names, and the command set, NVM.
    #[must_use]
    pub fn descriptors(&self) -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        let mut rest = &mut page[..];
        let mut put = |kind: u8, bytes: &[u8]| {
            let (to, after) = std::mem::take(&mut rest).split_at_mut(4 + bytes.len());
            (to[0], to[1]) = (kind, bytes.len() as u8);
            to[4..].copy_from_slice(bytes);
            rest = after;
        };
        if let Some(eui64) = self.eui64 {
            put(1, &eui64);
        }
        if let Some(nguid) = self.nguid {
            put(2, &nguid);
        }
        if let Some(uuid) = self.uuid {
            put(3, &uuid);
        }
        put(4, &[0]);
        page
    }
}

/// Combinations of command sets (CNS 1Ch; Base 2.0 §5.17.2): one, NVM alone.
#[must_use]
pub fn command_sets() -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    1u64.put(&mut page);
    page
}
