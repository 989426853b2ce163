//! One client: its messages, in the order in which they come, and the answers to them.

use super::message::{DATA_BYTES_MAX, FILES_MAX, HEADER_BYTES, Header, Reader, command, dwords};
use super::{Function, Map, irq, region};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

/// Most that waits to be sent, bytes: a client that asks and does not listen is none.
const UNSENT_MAX: usize = 8 << 20;

// Flags of VFIO's structures.
const DEVICE_RESETTABLE: u32 = 1;
const DEVICE_PCI: u32 = 2;
const REGION_READABLE_AND_WRITABLE: u32 = 3;
const IRQ_BY_EVENTFD: u32 = 1;
const SET_IRQS_BOOLS: u32 = 2;
const SET_IRQS_EVENTFDS: u32 = 4;
const SET_IRQS_TRIGGER: u32 = 32;
const MAP_READABLE: u32 = 1;
const MAP_WRITABLE: u32 = 2;
const UNMAP_ALL: u32 = 2;
/// Of the structure that says what is lent.
const MAP_BYTES: u32 = 32;
/// Memory is lent in pages.
const MAP_ALIGNMENT: u64 = 4096;
const REGION_MAPPABLE: u32 = 4;
const REGION_HAS_CAPABILITIES: u32 = 8;
const REGION_INFO_BYTES: u32 = 32;
/// The capability that says what can be mapped, with one area.
const SPARSE_BYTES: u32 = 32;

/// What this side can do. Without more said, the other may send one file with a message.
fn capabilities() -> String {
    format!(
        "{{\"capabilities\":{{\"max_msg_fds\":{FILES_MAX},\"max_data_xfer_size\":{DATA_BYTES_MAX}}}}}\0"
    )
}

/// What came of looking at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message was answered, or a part of one has come.
    Worked,
    /// Nothing has come.
    Idle,
    /// The client is gone, or makes no sense.
    Closed,
}

/// A client. Its socket never blocks.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    header: [u8; HEADER_BYTES],
    header_has: usize,
    body: Vec<u8>,
    body_has: usize,
    files: Vec<OwnedFd>,
    unsent: Vec<u8>,
    /// Files that go with the byte at that place of what is unsent.
    unsent_files: VecDeque<(usize, Rc<File>)>,
    /// The client has said which version it speaks.
    is_agreed: bool,
    /// Of region accesses, reused.
    data: Vec<u8>,
}

impl Connection {
    /// A client that has connected.
    ///
    /// # Errors
    /// If its socket cannot be had without blocking.
    pub fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            header: [0; HEADER_BYTES],
            header_has: 0,
            body: Vec::new(),
            body_has: 0,
            files: Vec::new(),
            unsent: Vec::new(),
            unsent_files: VecDeque::new(),
            is_agreed: false,
            data: Vec::new(),
        })
    }

    /// Its socket, to wait for.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether answers wait for the client to take those before.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Takes what has come, one message at most, and sends what can be sent.
    pub fn step(&mut self, function: &mut impl Function) -> Step {
        match self.try_step(function) {
            Ok(step) => step,
            Err(Errno::AGAIN | Errno::INTR) => Step::Idle,
            Err(_) => Step::Closed,
        }
    }

    fn try_step(&mut self, function: &mut impl Function) -> Result<Step, Errno> {
        self.flush()?;
        if self.header_has < HEADER_BYTES {
            let took = self.take_header()?;
            if self.header_has < HEADER_BYTES {
                return Ok(if took { Step::Worked } else { Step::Closed });
            }
        }
        let header = Header::parse(&self.header)?;
        // No more is set aside than has come, but for a little.
        while self.body_has < header.bytes - HEADER_BYTES {
            let rest = header.bytes - HEADER_BYTES - self.body_has;
            self.body.resize(self.body_has + rest.min(1 << 16), 0);
            let into = &mut self.body[self.body_has..];
            match recv(&self.stream, into, RecvFlags::DONTWAIT)?.0 {
                0 => return Ok(Step::Closed),
                bytes => self.body_has += bytes,
            }
        }
        let body = std::mem::take(&mut self.body);
        let files = std::mem::take(&mut self.files);
        let mut answer = std::mem::take(&mut self.data);
        answer.clear();
        let done = self.handle(
            &header,
            &body[..self.body_has],
            files,
            function,
            &mut answer,
        );
        // A client of another version, or none, is not talked to.
        let is_agreed = self.is_agreed;
        if header.wants_reply() {
            header.answer(done.map(|()| &answer[..]), &mut self.unsent);
        } else {
            let end = self.unsent.len();
            self.unsent_files.retain(|(at, _)| *at < end);
        }
        (self.header_has, self.body_has, self.body, self.data) = (0, 0, body, answer);
        self.flush()?;
        Ok(if is_agreed {
            Step::Worked
        } else {
            Step::Closed
        })
    }

    /// Files come with the first byte of their message, so the header is taken by itself.
    fn take_header(&mut self) -> Result<bool, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut self.header[self.header_has..];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(into)],
            &mut control,
            flags,
        )?;
        for control in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = control {
                self.files.extend(files);
            }
        }
        self.header_has += message.bytes;
        if self.files.len() > FILES_MAX {
            return Err(Errno::PROTO);
        }
        Ok(message.bytes > 0)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        while !self.unsent.is_empty() {
            match self.send_some() {
                Ok(sent) => {
                    drop(self.unsent.drain(..sent));
                    self.unsent_files.retain(|(at, _)| *at > 0);
                    for (at, _) in &mut self.unsent_files {
                        *at -= sent;
                    }
                }
                Err(Errno::AGAIN) if self.unsent.len() <= UNSENT_MAX => return Ok(()),
                Err(Errno::AGAIN) => return Err(Errno::NOBUFS),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Sends up to the next byte that a file goes with; a file leaves with its byte.
    fn send_some(&self) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let next = |(at, _): &(usize, Rc<File>)| *at;
        let Some((0, file)) = self.unsent_files.front() else {
            let end = self.unsent_files.front().map_or(self.unsent.len(), next);
            return send(&self.stream, &self.unsent[..end], flags);
        };
        let end = self.unsent_files.get(1).map_or(self.unsent.len(), next);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let bytes = [IoSlice::new(&self.unsent[..end])];
        sendmsg(&self.stream, &bytes, &mut control, flags)
    }

    fn handle(
        &mut self,
        header: &Header,
        body: &[u8],
        files: Vec<OwnedFd>,
        function: &mut impl Function,
        answer: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let mut reader = Reader(body);
        if header.command == command::VERSION {
            return self.agree(&mut reader, answer);
        }
        if !self.is_agreed {
            return Err(Errno::PROTO);
        }
        match header.command {
            command::DMA_MAP => map(&mut reader, files, function),
            command::DMA_UNMAP => unmap(&mut reader, body, function, answer),
            command::DEVICE_GET_INFO => {
                let flags = DEVICE_RESETTABLE | DEVICE_PCI;
                dwords(&[16, flags, region::COUNT, irq::COUNT], answer);
                Ok(())
            }
            command::DEVICE_GET_REGION_INFO => {
                let file = region_info(&mut reader, function, answer)?;
                let at = self.unsent.len();
                self.unsent_files.extend(file.map(|file| (at, file)));
                Ok(())
            }
            command::DEVICE_GET_IRQ_INFO => {
                let (_, _, index) = (reader.u32()?, reader.u32()?, reader.u32()?);
                if index >= irq::COUNT {
                    return Err(Errno::INVAL);
                }
                dwords(
                    &[16, IRQ_BY_EVENTFD, index, function.interrupts(index)],
                    answer,
                );
                Ok(())
            }
            command::DEVICE_SET_IRQS => set_interrupts(&mut reader, files, function),
            command::REGION_READ => {
                let (at, index, count) = access(&mut reader, function)?;
                answer.extend_from_slice(&body[..16]);
                answer.resize(16 + count, 0);
                function.read(index, at, &mut answer[16..]);
                Ok(())
            }
            command::REGION_WRITE => {
                let (at, index, count) = access(&mut reader, function)?;
                if reader.0.len() != count {
                    return Err(Errno::INVAL);
                }
                function.write(index, at, reader.0);
                answer.extend_from_slice(&body[..16]);
                Ok(())
            }
            command::DEVICE_RESET => {
                function.reset();
                Ok(())
            }
            _ => Err(Errno::NOSYS),
        }
    }

    fn agree(&mut self, reader: &mut Reader<'_>, answer: &mut Vec<u8>) -> Result<(), Errno> {
        let (major, _minor) = (reader.u16()?, reader.u16()?);
        // What the client can do beyond is in a text, of which nothing is needed here.
        if major != 0 || self.is_agreed {
            return Err(Errno::NOTSUP);
        }
        self.is_agreed = true;
        dwords(&[0], answer);
        answer.extend_from_slice(capabilities().as_bytes());
        Ok(())
    }
}

fn map(
    reader: &mut Reader<'_>,
    mut files: Vec<OwnedFd>,
    function: &mut impl Function,
) -> Result<(), Errno> {
    let (room, flags) = (reader.u32()?, reader.u32()?);
    let (offset, address, bytes) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let is_aligned = (offset | address) % MAP_ALIGNMENT == 0;
    if flags & MAP_READABLE == 0 || files.len() > 1 || room < MAP_BYTES || !is_aligned {
        return Err(Errno::INVAL);
    }
    function.map(Map {
        address,
        bytes,
        offset,
        is_writable: flags & MAP_WRITABLE != 0,
        file: files.pop().map(File::from),
    })
}

fn unmap(
    reader: &mut Reader<'_>,
    body: &[u8],
    function: &mut impl Function,
    answer: &mut Vec<u8>,
) -> Result<(), Errno> {
    let (_, flags) = (reader.u32()?, reader.u32()?);
    let (address, bytes) = (reader.u64()?, reader.u64()?);
    match flags {
        0 => function.unmap(Some((address, bytes)))?,
        UNMAP_ALL if (address, bytes) == (0, 0) => function.unmap(None)?,
        // Which pages were written is not followed.
        _ => return Err(Errno::INVAL),
    }
    answer.extend_from_slice(&body[..24]);
    Ok(())
}

fn region_info(
    reader: &mut Reader<'_>,
    function: &impl Function,
    answer: &mut Vec<u8>,
) -> Result<Option<Rc<File>>, Errno> {
    let (room, _, index) = (reader.u32()?, reader.u32()?, reader.u32()?);
    if index >= region::COUNT {
        return Err(Errno::INVAL);
    }
    let bytes = function.region_bytes(index);
    let flags = match bytes {
        0 => 0,
        _ => REGION_READABLE_AND_WRITABLE,
    };
    let Some((file, mappable_bytes)) = function.shared(index) else {
        dwords(&[REGION_INFO_BYTES, flags, index, 0], answer);
        answer.extend_from_slice(&bytes.to_le_bytes());
        answer.extend_from_slice(&0u64.to_le_bytes());
        return Ok(None);
    };
    // Who has no room for what can be mapped hears how much it takes, and asks again. QEMU takes nothing that has
    // capabilities, and no place where they begin.
    let has_room = room >= REGION_INFO_BYTES + SPARSE_BYTES;
    let flags = flags | REGION_MAPPABLE;
    let (flags, capability) = match has_room {
        true => (flags | REGION_HAS_CAPABILITIES, REGION_INFO_BYTES),
        false => (flags, 0),
    };
    let head = [REGION_INFO_BYTES + SPARSE_BYTES, flags, index, capability];
    dwords(&head, answer);
    answer.extend_from_slice(&bytes.to_le_bytes());
    answer.extend_from_slice(&0u64.to_le_bytes());
    if !has_room {
        return Ok(None);
    }
    // Capability 1, version 1, none after it; one area.
    dwords(&[1 | 1 << 16, 0, 1, 0], answer);
    answer.extend_from_slice(&0u64.to_le_bytes());
    answer.extend_from_slice(&mappable_bytes.to_le_bytes());
    Ok(Some(file))
}

fn set_interrupts(
    reader: &mut Reader<'_>,
    files: Vec<OwnedFd>,
    function: &mut impl Function,
) -> Result<(), Errno> {
    let (_, flags, index) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let (start, count) = (reader.u32()?, reader.u32()?);
    let end = start.checked_add(count).ok_or(Errno::INVAL)?;
    let all = function.interrupts(index);
    if index >= irq::COUNT || end > all || flags & SET_IRQS_BOOLS != 0 {
        return Err(Errno::INVAL);
    }
    if flags & SET_IRQS_TRIGGER == 0 {
        return Ok(()); // Masking is the monitor's own affair.
    }
    let mut files = files.into_iter().map(Some);
    let files: Vec<_> = match (flags & SET_IRQS_EVENTFDS, count) {
        // No data and no count: all are off.
        (0, 0) => return function.set_interrupts(index, 0, (0..all).map(|_| None).collect()),
        (0, _) => return Err(Errno::NOTSUP),
        // One for each, or none at all: nobody is signalled.
        _ if files.len() > 0 && files.len() != count as usize => return Err(Errno::INVAL),
        _ => (0..count).map(|_| files.next().flatten()).collect(),
    };
    function.set_interrupts(index, start, files)
}

/// Where an access goes: at, region, bytes.
fn access(reader: &mut Reader<'_>, function: &impl Function) -> Result<(u64, u32, usize), Errno> {
    let (at, index, count) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let end = at.checked_add(count.into()).ok_or(Errno::INVAL)?;
    if index >= region::COUNT
        || end > function.region_bytes(index)
        || count as usize > DATA_BYTES_MAX
    {
        return Err(Errno::INVAL);
    }
    Ok((at, index, count as usize))
}
