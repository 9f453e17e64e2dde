//! A watch that runs in the background of a script.
//!
//! One thread reads the stream and hands over whole events. The script takes them with a deadline,
//! so it never waits for ever.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::binary;
use crate::http::{Closer, Connection};

/// A watch that was opened.
pub(crate) struct Watch {
    items: Receiver<Item>,
    closer: Closer,
}

/// How events follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framing {
    /// JSON, one event a line.
    Lines,
    /// Protobuf, each event behind its length.
    Messages,
    /// CBOR, one event after the other.
    Sequence,
}

/// An item of a stream.
#[derive(Debug)]
enum Item {
    Event(Value),
    /// The stream ended properly.
    End,
    /// The stream broke, or had an invalid event.
    Broken(String),
}

impl Watch {
    /// Reads events from a connection whose response has begun.
    pub(crate) fn read(mut connection: Connection, framing: Framing) -> Result<Self> {
        connection.set_read_timeout(None)?;
        let closer = connection.closer()?;
        let (sender, items) = channel();
        std::thread::spawn(move || {
            let last = match forward(&mut connection, framing, &sender) {
                Ok(()) => Item::End,
                Err(error) => Item::Broken(format!("{error:#}")),
            };
            let _ = sender.send(last); // the receiver may be gone
        });
        Ok(Self { items, closer })
    }

    /// The next event; `None` if the server ended the stream.
    pub(crate) fn next(&self, deadline: Instant) -> Result<Option<Value>> {
        match self.items.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Item::Event(event)) => Ok(Some(event)),
            Ok(Item::End) => Ok(None),
            Ok(Item::Broken(why)) => bail!("the watch broke: {why}"),
            Err(RecvTimeoutError::Timeout) => bail!("nothing came in time"),
            Err(RecvTimeoutError::Disconnected) => bail!("the watch had already ended"),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.closer.close();
    }
}

/// Sends each event to the script.
fn forward(connection: &mut Connection, framing: Framing, events: &Sender<Item>) -> Result<()> {
    let mut rest = Vec::new();
    while let Some(piece) = connection.next_piece()? {
        rest.extend_from_slice(&piece);
        while let Some(event) = framing.take(&mut rest)? {
            if events.send(Item::Event(event)).is_err() {
                return Ok(());
            }
        }
    }
    if !rest.is_empty() {
        bail!("{} bytes after the last whole event", rest.len());
    }
    Ok(())
}

impl Framing {
    /// The framing of a media type.
    pub(crate) fn of(media_type: &str) -> Self {
        if media_type.starts_with(binary::PROTOBUF) {
            Self::Messages
        } else if media_type.starts_with(binary::CBOR) {
            Self::Sequence
        } else {
            Self::Lines
        }
    }

    /// Removes and parses the first event, if it is complete.
    fn take(self, bytes: &mut Vec<u8>) -> Result<Option<Value>> {
        match self {
            Self::Lines => {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                    return Ok(None);
                };
                let line: Vec<u8> = bytes.drain(..=end).collect();
                Ok(Some(serde_json::from_slice(&line)?))
            }
            Self::Sequence => {
                let Some((event, length)) = binary::first_cbor(bytes)? else { return Ok(None) };
                bytes.drain(..length);
                Ok(Some(event))
            }
            Self::Messages => {
                let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
                let end = 4 + u32::from_be_bytes(*length) as usize;
                if bytes.len() < end {
                    return Ok(None);
                }
                let frame: Vec<u8> = bytes.drain(..end).collect();
                Ok(Some(binary::read_event(&frame[4..])?))
            }
        }
    }
}
