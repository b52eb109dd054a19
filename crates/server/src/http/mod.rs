//! HTTP beside the protocol: `/healthz`, `/readyz`, `/metrics`, `POST /query`, `GET /subscribe`.
//!
//! Where there are users, all but the two probes want a name and a password (HTTP's Basic). Calls
//! of the engine run on threads of their own: the one thread that answers requests never waits.

mod json;
mod subscribe;

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_engine::{Connection, Error, ErrorKind, Interrupt, Outcome, TransactionState};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::ServerError;
use crate::shared::ServerShared;

/// Listens, and serves requests from now on.
pub(crate) async fn start(address: SocketAddr, shared: Arc<ServerShared>) -> Result<JoinHandle<()>, ServerError> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        ServerError::new(format!("cannot serve HTTP on {address}: {error}")).with_hint("Choose another with --http.")
    })?;
    let local = listener.local_addr().unwrap_or(address);
    tracing::info!(address = %local, "serving HTTP");
    let routes = routes(shared);
    Ok(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!("HTTP has ended: {error}");
        }
    }))
}

fn routes(shared: Arc<ServerShared>) -> Router {
    let bytes_max = shared.limits.message_bytes_max;
    Router::new()
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/query", post(query))
        .route("/subscribe", get(subscribe::subscribe))
        .layer(DefaultBodyLimit::max(bytes_max))
        .with_state(shared)
}

/// A connection for a request; or the answer that refuses it.
pub(super) async fn connect(shared: &Arc<ServerShared>, headers: &HeaderMap) -> Result<Connection, Box<Response>> {
    let (shared, login) = (Arc::clone(shared), login(headers));
    let connected = spawn_blocking(move || {
        let mut known = None;
        if !shared.users.is_empty() {
            let user = login.and_then(|(name, password)| Some((shared.users.check(&name, &password)?.read_only, name)));
            known = Some(user.ok_or_else(|| Box::new(unauthorized()))?);
        }
        let mut connection = shared.database.connect().map_err(|error| Box::new(refused(&error)))?;
        if let Some((reads_only, name)) = known {
            connection.log_in(&name).map_err(|error| Box::new(refused(&error)))?;
            if reads_only {
                connection.forbid_writes();
            }
        }
        Ok(connection)
    });
    connected.await.unwrap_or_else(|_| Err(Box::new(StatusCode::INTERNAL_SERVER_ERROR.into_response())))
}

/// Name and password of HTTP's Basic authentication.
fn login(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(text.strip_prefix("Basic ")?.trim()).ok()?;
    let (name, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

fn unauthorized() -> Response {
    let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"anabranch\"")];
    (StatusCode::UNAUTHORIZED, ask, "a name and a password are needed\n").into_response()
}

/// An error as an answer.
pub(super) fn refused(error: &Error) -> Response {
    let status = match error.kind {
        ErrorKind::Invalid | ErrorKind::Data => StatusCode::BAD_REQUEST,
        ErrorKind::Cancelled => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::Unavailable | ErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(told(error))).into_response()
}

/// An error as JSON.
pub(super) fn told(error: &Error) -> Value {
    json!({
        "error": error.message,
        "code": error.sqlstate(),
        "detail": error.detail,
        "hint": error.hint,
        "context": error.context(),
        "position": error.position,
    })
}

/// Whether the process is of use: what watches it starts another where it is not.
async fn healthy(State(shared): State<Arc<ServerShared>>) -> Response {
    match shared.database.has_failed() {
        false => "ok\n".into_response(),
        true => (StatusCode::SERVICE_UNAVAILABLE, "the engine has failed: restart the server\n").into_response(),
    }
}

/// Whether the engine answers.
async fn ready(State(shared): State<Arc<ServerShared>>) -> Response {
    let asked = spawn_blocking(move || !shared.peers.is_ending() && shared.database.connect().is_ok());
    match asked.await {
        Ok(true) => "ready\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

async fn metrics(State(shared): State<Arc<ServerShared>>, headers: HeaderMap) -> Response {
    let mut connection = match connect(&shared, &headers).await {
        Ok(connection) => connection,
        Err(refusal) => return *refusal,
    };
    let text = spawn_blocking(move || shared.metrics.text(&mut connection)).await;
    let form = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    text.map_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response(), |text| (form, text).into_response())
}

/// Runs the statements of the body: SQL, or an object `{"sql": ..}`. The answer is that of the
/// last.
async fn query(State(shared): State<Arc<ServerShared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(sql) = statement(&body) else {
        let hint = "Send SQL as text, or {\"sql\": \"SELECT ..\"}.\n";
        return (StatusCode::BAD_REQUEST, hint).into_response();
    };
    let mut connection = match connect(&shared, &headers).await {
        Ok(connection) => connection,
        Err(refusal) => return *refusal,
    };
    // (A client that has gone drops what waits here.)
    let _ends = EndsStatement(connection.interrupt());
    let answered = spawn_blocking(move || {
        shared.metrics.statements.inc();
        let outcome = connection.execute(&sql).and_then(|mut outcomes| answer(&mut connection, outcomes.pop()));
        outcome.and_then(|value| ended(&connection).map(|()| value)).inspect_err(|_| {
            shared.metrics.errors.inc();
        })
    });
    match answered.await {
        Ok(Ok(value)) => Json(value).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A request is a client of its own, with which a transaction ends.
fn ended(connection: &Connection) -> Result<(), Error> {
    match connection.transaction() {
        TransactionState::Idle => Ok(()),
        _ => Err(Error::invalid("the request ends within a transaction, of which nothing is kept")
            .with_sqlstate("25000")
            .with_hint("Send BEGIN, the statements and COMMIT in one request.")),
    }
}

/// Stops the statement when it is dropped; one that is over is not there any more.
struct EndsStatement(Interrupt);

impl Drop for EndsStatement {
    fn drop(&mut self) {
        self.0.trigger();
    }
}

fn statement(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    match text.starts_with('{') {
        true => serde_json::from_str::<Value>(text).ok()?.get("sql")?.as_str().map(str::to_owned),
        false => (!text.is_empty()).then(|| text.to_owned()),
    }
}

fn answer(connection: &mut Connection, outcome: Option<Outcome>) -> Result<Value, Error> {
    Ok(match outcome {
        Some(Outcome::Rows(rows)) => json!({
            "columns": json::columns(&rows.schema),
            "rows": json::rows(&rows.schema, &rows.batches),
            "notices": rows.notices,
        }),
        Some(Outcome::Done { tag, detail }) => json!({ "done": tag, "detail": detail }),
        Some(Outcome::Subscription(subscription)) => {
            connection.unsubscribe(subscription);
            return Err(Error::invalid("SUBSCRIBE has no end").with_hint("Use GET /subscribe?query=.."));
        }
        Some(Outcome::Copy(_)) => {
            connection.copy_stop();
            return Err(Error::invalid("COPY with the client is not supported over HTTP").with_hint("Use psql."));
        }
        None => json!({ "done": "" }),
    })
}
