//! Perfetto's trace format, as far as it is needed: slices on tracks. Numbers of fields are those of
//! `protos/perfetto/trace/` of <https://github.com/google/perfetto>: `trace_packet.proto`,
//! `track_event/track_event.proto`, `track_event/track_descriptor.proto`, `track_event/debug_annotation.proto`.

/// `TracePacket` in `Trace`.
const PACKET: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE_ID: u32 = 10;
const TRACK_EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const TRACK_DESCRIPTOR: u32 = 60;
/// `TrackEvent`.
const ANNOTATIONS: u32 = 4;
const TYPE: u32 = 9;
const TRACK_UUID: u32 = 11;
const CATEGORIES: u32 = 22;
const NAME: u32 = 23;
/// `TrackDescriptor`.
const DESCRIPTOR_UUID: u32 = 1;
const DESCRIPTOR_NAME: u32 = 2;
const PARENT_UUID: u32 = 5;
/// `DebugAnnotation`.
const UINT_VALUE: u32 = 3;
const ANNOTATION_NAME: u32 = 10;

/// `TYPE_SLICE_BEGIN` and `TYPE_SLICE_END`.
const BEGIN: u64 = 1;
const END: u64 = 2;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing of before is needed.
const CLEARED: u64 = 1;
/// All packets are of one sequence.
const SEQUENCE: u64 = 1;

/// A protobuf message in the making.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Packets, one after the other: a trace, or a part of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets(Message);

impl Packets {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.0
    }

    fn packet(&mut self, mut packet: Message) {
        packet.number(SEQUENCE_ID, SEQUENCE);
        self.0.bytes(PACKET, &packet.0);
    }

    /// Names a track. The first of them all begins the sequence.
    pub(super) fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str) {
        let mut track = Message::default();
        track.number(DESCRIPTOR_UUID, uuid);
        track.bytes(DESCRIPTOR_NAME, name.as_bytes());
        if let Some(parent) = parent {
            track.number(PARENT_UUID, parent);
        }
        let mut packet = Message::default();
        packet.bytes(TRACK_DESCRIPTOR, &track.0);
        if self.0.0.is_empty() {
            packet.number(SEQUENCE_FLAGS, CLEARED);
        }
        self.packet(packet);
    }

    /// A slice begins on a track.
    pub(super) fn begin(
        &mut self,
        at_ns: u64,
        track: u64,
        (category, name): (&str, &str),
        notes: &[(&str, u64)],
    ) {
        let mut event = Message::default();
        event.number(TYPE, BEGIN);
        event.number(TRACK_UUID, track);
        event.bytes(CATEGORIES, category.as_bytes());
        event.bytes(NAME, name.as_bytes());
        for (name, value) in notes {
            let mut note = Message::default();
            note.bytes(ANNOTATION_NAME, name.as_bytes());
            note.number(UINT_VALUE, *value);
            event.bytes(ANNOTATIONS, &note.0);
        }
        self.event(at_ns, &event);
    }

    /// The slice ends that has begun last on a track.
    pub(super) fn end(&mut self, at_ns: u64, track: u64) {
        let mut event = Message::default();
        event.number(TYPE, END);
        event.number(TRACK_UUID, track);
        self.event(at_ns, &event);
    }

    fn event(&mut self, at_ns: u64, event: &Message) {
        let mut packet = Message::default();
        packet.number(TIMESTAMP, at_ns);
        packet.bytes(TRACK_EVENT, &event.0);
        self.packet(packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_protobuf() {
        // "Protocol Buffers: Encoding", field 1 with 150, field 2 with "testing".
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
        message = Message::default();
        message.varint(u64::MAX);
        assert_eq!(message.0.len(), 10);
    }
}
