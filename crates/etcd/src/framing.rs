//! gRPC framing: five bytes (no compression, length), then the protobuf message.
//!
//! It must not know connections or calls.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::error::Error;

/// The length of the frame header.
const PREFIX_BYTES: usize = 5;

/// The longest accepted message: etcd's default limit of a request is 2 MiB with gRPC's overhead,
/// but a page of a range, or the events of many transactions, arrive in one message.
const MESSAGE_BYTES_MAX: usize = 512 << 20;

/// Encodes a message with its frame header.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    // A request is far smaller than 4 GiB, because etcd accepts 2 MiB.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Removes and returns the next message, if it is complete.
pub(crate) fn unframed(buffer: &mut BytesMut) -> Result<Option<Bytes>, Error> {
    let Some((&[compressed, a, b, c, d], rest)) = buffer.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MESSAGE_BYTES_MAX {
        return Err(Error::Lost(format!(
            "etcd sent a message of {length} bytes (compression flag {compressed}); the limit is \
             {MESSAGE_BYTES_MAX} bytes, uncompressed"
        )));
    }
    if rest.len() < length {
        buffer.reserve(PREFIX_BYTES + length - buffer.len());
        return Ok(None);
    }
    let mut message = buffer.split_to(PREFIX_BYTES + length).freeze();
    Ok(Some(message.split_off(PREFIX_BYTES)))
}

/// Decodes `%XX` in a status message.
pub(crate) fn unescaped(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| byte == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::CompactionRequest;

    /// A message is returned when it is complete, wherever it was split.
    #[test]
    fn split_messages_are_reassembled() {
        let messages = [CompactionRequest { revision: 7 }, CompactionRequest { revision: 0 }];
        let wire: Vec<u8> = messages.iter().flat_map(framed).collect();
        for cut in 0..=wire.len() {
            let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
            for part in [&wire[..cut], &wire[cut..]] {
                buffer.extend_from_slice(part);
                while let Some(message) = unframed(&mut buffer).unwrap() {
                    found.push(CompactionRequest::decode(message).unwrap());
                }
            }
            assert_eq!((found.as_slice(), buffer.len()), (&messages[..], 0), "cut at {cut}");
        }
    }

    #[test]
    fn an_invalid_frame_is_an_error() {
        for wire in [[1, 0, 0, 0, 0], [0, 255, 255, 255, 255]] {
            assert!(unframed(&mut BytesMut::from(&wire[..])).is_err(), "{wire:?}");
        }
    }

    #[test]
    fn texts_of_statuses_are_unescaped() {
        for (text, expected) in
            [("a b", "a b"), ("%41%c3%bc", "Aü"), ("100%", "100%"), ("%zz", "%zz")]
        {
            assert_eq!(unescaped(text.as_bytes()), expected);
        }
    }
}
