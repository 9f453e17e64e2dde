//! A plain HTTP server, as in a pod, that responds with the request that it received.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use futures_util::stream;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, UPGRADE,
};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

pub(crate) type Body = BoxBody<Bytes, io::Error>;

pub(crate) struct Site {
    pub(crate) port: u16,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service =
                    service_fn(|request| async { Ok::<_, Infallible>(answer(request).await) });
                let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // Errors are expected: clients disconnect, and some responses fail on purpose.
                tokio::spawn(async move { drop(http.with_upgrades().await) });
            }
        });
        Self { port }
    }
}

async fn answer(mut request: Request<Incoming>) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    match request.uri().path() {
        "/redirects" => {
            let mut answer = text(StatusCode::FOUND, "moved");
            answer.headers_mut().insert(LOCATION, query.parse().unwrap());
            answer
        }
        "/page" => {
            let mut answer = text(StatusCode::OK, r#"<a href="/x">x</a><a href=rel>y</a>"#);
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            answer.headers_mut().insert(CONTENT_TYPE, html);
            let anyone = HeaderValue::from_static("*");
            answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, anyone);
            answer
        }
        "/breaks" => breaking(),
        "/nothing" => {
            let mut answer = text(StatusCode::NO_CONTENT, "");
            answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(0));
            answer
        }
        "/switches" => {
            let mut answer = text(StatusCode::SWITCHING_PROTOCOLS, "");
            let headers = answer.headers_mut();
            headers.insert("connection", HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, request.headers()[UPGRADE].clone());
            headers.insert("x-seen", request.uri().to_string().parse().unwrap());
            tokio::spawn(async move {
                let stream = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
                let (mut from, mut to) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut from, &mut to).await; // until the peer closes
            });
            answer
        }
        _ => echo(request).await,
    }
}

/// Responds with the request's method, URI, headers, and length of the body.
async fn echo(request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let length = body.collect().await.unwrap().to_bytes().len();
    let mut request = format!("{} {}\n", head.method, head.uri);
    let mut headers: Vec<_> = head.headers.iter().collect();
    headers.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
    }
    text(StatusCode::CREATED, &format!("{request}{length}"))
}

pub(crate) fn text(code: StatusCode, text: &str) -> Response<Body> {
    let body = Full::from(text.to_owned()).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = code;
    answer
}

/// A response whose body fails in the middle.
pub(crate) fn breaking() -> Response<Body> {
    let first = stream::iter([Ok(Frame::data(Bytes::from("first")))]);
    // The yield lets the first chunk be sent before the failure.
    let broken = stream::once(async {
        tokio::task::yield_now().await;
        Err(io::Error::other("gone"))
    });
    let frames = Box::pin(futures_util::StreamExt::chain(first, broken));
    Response::new(BodyExt::boxed(StreamBody::new(frames)))
}
