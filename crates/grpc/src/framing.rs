//! gRPC framing: five bytes (no compression, length), then the protobuf message.
//!
//! It must not know connections or calls.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::failure::{Code, Failure};

/// The length of the frame header.
const PREFIX_BYTES: usize = 5;

/// Encodes a message with its frame header.
pub fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + length);
    bytes.put_u8(0);
    // No service accepts messages of 4 GiB, and ours are far smaller.
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// Removes and returns the next message, if it is complete.
///
/// # Errors
/// If the message is compressed, or longer than `bytes_max`.
pub(crate) fn unframed(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Bytes>, Failure> {
    let Some((&[compressed, a, b, c, d], rest)) = buffer.split_first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > bytes_max {
        let why = format!(
            "a response message has {length} bytes (compression flag {compressed}); the limit is \
             {bytes_max} bytes, uncompressed"
        );
        return Err(Failure::lost(Code::INTERNAL, why));
    }
    if rest.len() < length {
        buffer.reserve(PREFIX_BYTES + length - buffer.len());
        return Ok(None);
    }
    let mut message = buffer.split_to(PREFIX_BYTES + length).freeze();
    Ok(Some(message.split_off(PREFIX_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct Number {
        #[prost(int64, tag = "1")]
        number: i64,
    }

    /// A message is returned when it is complete, wherever it was split.
    #[test]
    fn split_messages_are_reassembled() {
        let messages = [Number { number: 7 }, Number { number: 0 }];
        let wire: Vec<u8> = messages.iter().flat_map(framed).collect();
        for cut in 0..=wire.len() {
            let (mut buffer, mut found) = (BytesMut::new(), Vec::new());
            for part in [&wire[..cut], &wire[cut..]] {
                buffer.extend_from_slice(part);
                while let Some(message) = unframed(&mut buffer, 100).unwrap() {
                    found.push(Number::decode(message).unwrap());
                }
            }
            assert_eq!((found.as_slice(), buffer.len()), (&messages[..], 0), "cut at {cut}");
        }
    }

    #[test]
    fn an_invalid_frame_is_an_error() {
        for wire in [[1, 0, 0, 0, 0], [0, 255, 255, 255, 255], [0, 0, 0, 0, 101]] {
            assert!(unframed(&mut BytesMut::from(&wire[..]), 100).is_err(), "{wire:?}");
        }
    }
}
