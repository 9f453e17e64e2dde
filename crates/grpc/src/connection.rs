//! Calls and streams on a connection.
//!
//! A call ends with `grpc-status` and `grpc-message` in the trailers, or in the headers if there is
//! no message.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::uri::{Authority, Scheme};
use http::{Request, StatusCode, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::failure::{Code, Failure, ending, with_causes};
use crate::framing::{framed, unframed};

/// A connection; calls on it may run concurrently.
#[derive(Clone)]
pub struct Connection {
    service: Arc<Service>,
    sender: SendRequest<Outgoing>,
}

/// How requests name the service, and the bounds of its responses.
#[derive(Debug)]
pub struct Service {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Its host and port.
    pub authority: Authority,
    /// The longest accepted message, in bytes.
    pub message_bytes_max: usize,
}

/// How many requests of a stream may wait to be sent.
const REQUESTS_MAX: usize = 4;

impl Connection {
    /// Starts HTTP/2 on a connected socket, with the settings of `builder`.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn open<S>(
        socket: S,
        builder: &Builder<TokioExecutor>,
        service: Arc<Service>,
    ) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = builder.handshake(TokioIo::new(socket)).await;
        let (sender, connection) = handshake.map_err(|why| Failure::unsent(with_causes(&why)))?;
        // The task ends with its senders, or when the service disconnects; the next call detects
        // that.
        tokio::spawn(connection);
        Ok(Self { service, sender })
    }

    /// Whether the connection can take no further call.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Makes a call with one response. `method` is a path, `/service/Method`; `request` is a
    /// [`framed`] message.
    ///
    /// # Errors
    /// If there is no response, or not exactly one.
    pub async fn call<A: Message + Default>(
        &self,
        method: &str,
        request: Bytes,
    ) -> Result<A, Failure> {
        self.begin(method, request).await?.only().await
    }

    /// Starts a call with one request. It returns when the service starts to respond.
    ///
    /// # Errors
    /// If the service does not start to respond, or responds with a status alone.
    pub async fn begin(&self, method: &str, request: Bytes) -> Result<Responses, Failure> {
        self.send(method, Outgoing::One(Some(request))).await
    }

    /// Starts a call with a stream of requests, of which `first` is the first, and a stream of
    /// responses. It returns when the service starts to respond.
    ///
    /// # Errors
    /// As those of [`Connection::begin`].
    pub async fn stream(
        &self,
        method: &str,
        first: &impl Message,
    ) -> Result<(Requests, Responses), Failure> {
        let (requests, body) = mpsc::channel(REQUESTS_MAX);
        let requests = Requests(requests);
        requests.send(first)?;
        Ok((requests, self.send(method, Outgoing::Many(body)).await?))
    }

    async fn send(&self, method: &str, body: Outgoing) -> Result<Responses, Failure> {
        let uri = Uri::builder()
            .scheme(self.service.scheme.clone())
            .authority(self.service.authority.clone())
            .path_and_query(method)
            .build()
            .map_err(Failure::unsent)?;
        let request = Request::post(uri)
            .header(TE, "trailers")
            .header(CONTENT_TYPE, "application/grpc")
            .body(body)
            .map_err(Failure::unsent)?;
        let mut sender = self.sender.clone();
        sender.ready().await.map_err(|why| Failure::unsent(with_causes(&why)))?;
        let response =
            sender.send_request(request).await.map_err(|why| match why.is_canceled() {
                true => Failure::unsent(with_causes(&why)),
                false => Failure::lost(Code::UNAVAILABLE, with_causes(&why)),
            })?;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            let code = Code::of_http(head.status);
            return Err(Failure::lost(code, format!("HTTP {}", head.status)));
        }
        if let Some(ending) = ending(&head.headers) {
            ending?;
        }
        let message_bytes_max = self.service.message_bytes_max;
        Ok(Responses { body, buffer: BytesMut::new(), message_bytes_max })
    }
}

/// The requests of a stream; dropping this ends the stream for the service.
pub struct Requests(mpsc::Sender<Bytes>);

impl Requests {
    /// Sends a request without waiting.
    ///
    /// # Errors
    /// If too many requests wait to be sent: the stream ended or is stuck.
    pub fn send(&self, request: &impl Message) -> Result<(), Failure> {
        let sent = self.0.try_send(framed(request));
        sent.map_err(|_| Failure::lost(Code::UNAVAILABLE, "the stream takes no requests"))
    }
}

/// The responses of a call.
pub struct Responses {
    body: Incoming,
    buffer: BytesMut,
    message_bytes_max: usize,
}

impl Responses {
    /// Waits for the next response; `None` at the end of a successful call. Cancel safe.
    ///
    /// # Errors
    /// If the call failed, or a response cannot be read.
    pub async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Failure> {
        let lost = |code, why: &str| Failure::lost(code, why);
        loop {
            if let Some(message) = unframed(&mut self.buffer, self.message_bytes_max)? {
                let response = A::decode(message);
                return response.map(Some).map_err(|why| Failure::lost(Code::INTERNAL, why));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        let missing = || lost(Code::UNKNOWN, "the response has no grpc-status");
                        ending(&trailers).ok_or_else(missing)??;
                        return match self.buffer.is_empty() {
                            true => Ok(None),
                            false => Err(lost(Code::INTERNAL, "the last response is incomplete")),
                        };
                    }
                },
                Some(Err(why)) => {
                    return Err(Failure::lost(Code::UNAVAILABLE, with_causes(&why)));
                }
                None => {
                    let why = "the response ended before its trailers";
                    return Err(lost(Code::UNAVAILABLE, why));
                }
            }
        }
    }

    /// Waits for the only response of a call, and for the call's end.
    ///
    /// # Errors
    /// As those of [`Responses::next`], or if there is no response, or more than one.
    pub async fn only<A: Message + Default>(&mut self) -> Result<A, Failure> {
        let internal = |why| Failure::lost(Code::INTERNAL, why);
        let none = || internal("the service ended the call without a response message");
        let response = self.next().await?.ok_or_else(none)?;
        match self.next::<A>().await? {
            None => Ok(response),
            Some(_) => Err(internal("the service sent two response messages to one request")),
        }
    }
}

/// The body of a request: one message, or a stream of them.
enum Outgoing {
    One(Option<Bytes>),
    Many(mpsc::Receiver<Bytes>),
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::One(message) => Poll::Ready(message.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Many(messages) => {
                messages.poll_recv(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::One(None))
    }
}
