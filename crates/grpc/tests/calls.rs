//! Calls of a service that ends them in every way: the failure says whether the service may have
//! executed the request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle_grpc::{Code, Connection, Failure, Service, Stage, framed};
use prost::Message;
use tokio::task::JoinHandle;

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(int64, tag = "1")]
    number: i64,
}

/// What a service sends.
#[derive(Clone, Default)]
struct Answer {
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    /// The data of the response, in one frame each.
    data: Vec<Bytes>,
    trailers: Option<&'static [(&'static str, &'static str)]>,
    /// Whether the service ends the connection instead.
    disconnects: bool,
}

const MESSAGE_BYTES_MAX: usize = 100;

fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
    let parsed = rows.iter().map(|(name, value)| {
        (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
    });
    parsed.collect()
}

/// Connects to a service that answers every call in the same way.
async fn connect(answer: Answer) -> (Connection, JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let served = tokio::spawn(async move {
        let respond = move |_: Request<Incoming>| {
            let answer = answer.clone();
            async move {
                if answer.disconnects {
                    return Err("the service ends the connection");
                }
                let trailers = answer.trailers.map(|rows| Frame::trailers(headers(rows)));
                let frames = answer.data.into_iter().map(Frame::data).chain(trailers);
                let frames = frames.map(Ok::<_, Infallible>).collect::<Vec<_>>();
                let body = StreamBody::new(futures_util::stream::iter(frames));
                let mut response = Response::new(body);
                *response.status_mut() = answer.status.try_into().expect("a status");
                *response.headers_mut() = headers(answer.headers);
                Ok(response)
            }
        };
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let serving = builder.serve_connection(TokioIo::new(theirs), service_fn(respond));
        let _ = serving.await; // a refused call resets its stream
    });
    let service = Arc::new(Service {
        scheme: Scheme::HTTP,
        authority: Authority::from_static("localhost"),
        message_bytes_max: MESSAGE_BYTES_MAX,
    });
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let opened = Connection::open(ours, &builder, service).await;
    (opened.expect("the handshake succeeds"), served)
}

async fn call(connection: &Connection) -> Result<Number, Failure> {
    connection.call("/a.B/C", framed(&Number { number: 1 })).await
}

#[tokio::test]
async fn a_failure_says_how_far_the_call_went() {
    const OK: Option<&[(&str, &str)]> = Some(&[("grpc-status", "0")]);
    let one = framed(&Number { number: 7 });
    let long = framed(&Number { number: 1 }).iter().copied().chain([0; 200]).collect::<Bytes>();
    let answer = Answer { status: 200, ..Answer::default() };
    let data = |data: &[&Bytes], trailers| Answer {
        data: data.iter().copied().cloned().collect(),
        trailers,
        ..answer.clone()
    };
    let halves = [one.slice(..3), one.slice(3..)];
    let refused =
        Answer { headers: &[("grpc-status", "5"), ("grpc-message", "a%20b")], ..answer.clone() };
    let rows = [
        ("one message", data(&[&one], OK), Ok(7)),
        ("a divided message", data(&[&halves[0], &halves[1]], OK), Ok(7)),
        ("a status alone", refused, Err((Stage::Answered, 5))),
        (
            "a message and a status",
            data(&[&one], Some(&[("grpc-status", "14")])),
            Err((Stage::Answered, 14)),
        ),
        ("no message", data(&[], OK), Err((Stage::Lost, 13))),
        ("two messages", data(&[&one, &one], OK), Err((Stage::Lost, 13))),
        ("half a message", data(&[&halves[0]], OK), Err((Stage::Lost, 13))),
        ("a message with bytes behind it", data(&[&long], OK), Err((Stage::Lost, 13))),
        ("no trailers", data(&[&one], None), Err((Stage::Lost, 14))),
        ("trailers without a status", data(&[&one], Some(&[("a", "b")])), Err((Stage::Lost, 2))),
        ("HTTP 503", Answer { status: 503, ..answer.clone() }, Err((Stage::Lost, 14))),
        ("HTTP 404", Answer { status: 404, ..answer.clone() }, Err((Stage::Lost, 12))),
        ("no answer", Answer { disconnects: true, ..answer.clone() }, Err((Stage::Lost, 14))),
    ];
    for (what, answer, expected) in rows {
        let (connection, _) = connect(answer).await;
        let outcome = call(&connection).await;
        let seen = outcome.as_ref().map(|it| it.number).map_err(|it| (it.stage, it.code.0));
        assert_eq!(seen, expected, "{what}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_call_on_a_connection_that_has_ended_is_not_sent() {
    let (connection, served) = connect(Answer::default()).await;
    served.abort();
    let _ = served.await; // it was aborted
    while !connection.is_closed() {
        tokio::task::yield_now().await;
    }
    let failure = call(&connection).await.expect_err("the service is gone");
    assert_eq!((failure.stage, failure.code), (Stage::Unsent, Code::UNAVAILABLE));
}
